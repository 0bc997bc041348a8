#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Calibrates emulated clusters, and compares predicted with measured training steps on them. See --help.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../cmake/packages.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/packages.sh"
# shellcheck source=cluster_options.sh
source "$top/bench/cluster_options.sh"

usage() {
  cat <<'TXT'
usage: bench/predict.sh [--rounds N] [--details] [NODESxRANKS...]
Calibrates emulated clusters of 100 Mbit/s and 1 Gbit/s (2x1 4x1 2x2 4x2: nodes x ranks per node), and runs programs N times (7) on each. Prints
two tables in Markdown, and a summary of each:
  four training steps: predicted seconds and the measured median;
  ten shardings of the same layers, for three numbers of rows: the one that the cost model chooses, and the fastest one.
--details: seconds of each kind of operation and of each sharding, on standard error. Hardware files are left in build/release/bench.
Root and iproute2 are needed: see bench/emulated_cluster.sh. All ranks share this machine's cores, so run nothing else meanwhile.
TXT
}
rounds=7
details=
own_option() {
  [ "$1" = --details ] || return 0
  details=--details
  return 1
}
read_options "$@"
build_for_clusters bench_predict gshard-calibrate

rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
turn() {
  local all=$((nodes * ranks)) file=$build/bench/cluster-$cluster-$rate.json
  on_cluster bash -c "mpirun -n $all '$build/examples/gshard-calibrate' -o '$file' >&2 &&
    mpirun -n $all '$build/bench/bench_predict' '$file' '$cluster, $rate' $rounds $details" >>"$rows"
}
on_each_cluster turn
[ -s "$rows" ] || exit 0
echo "| program | cluster | predicted | measured | difference |"
echo "|---|---|---:|---:|---:|"
grep -v '^| layers, ' "$rows"
echo
grep -v '^| layers, ' "$rows" | awk -F'|' '{ d = $6 + 0; d = d < 0 ? -d : d; sum += d; if (d > worst) worst = d; near += d <= 20 }
  END { printf "%d cases: %.0f %% on average, %d %% at worst, %d within 20 %%.\n", NR, sum / NR, worst, near }'
echo
echo "| program | cluster | chosen | measured | fastest | measured | ratio |"
echo "|---|---|---|---:|---|---:|---:|"
grep '^| layers, ' "$rows"
echo
grep '^| layers, ' "$rows" | awk -F'|' '{ r = $8 + 0; if (r > worst) worst = r; near += r <= 1.05 }
  END { printf "%d cases: the chosen sharding is within 5 %% of the fastest in %d, and takes at most %.2f times as long.\n", NR, near, worst }'
