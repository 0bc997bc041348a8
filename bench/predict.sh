#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Calibrates emulated clusters, and compares predicted with measured training steps on them. See --help.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../cmake/packages.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/packages.sh"

usage() {
  cat <<'TXT'
usage: bench/predict.sh [--runs N] [NODESxRANKS...]
Calibrates emulated clusters of 100 Mbit/s and 1 Gbit/s (2x1 4x1 2x2 4x2: nodes x ranks per node), runs four training steps N times (7) on each,
and prints a table in Markdown: predicted seconds beside the measured median. Hardware files are left in build/release/bench.
Root and iproute2 are needed: see bench/emulated_cluster.sh. All ranks share this machine's cores, so run nothing beside it.
TXT
}
runs=7
clusters=()
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --runs) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "--runs takes a number"; runs=$2; shift ;;
    *) [[ $1 =~ ^[1-9][0-9]*x[1-9][0-9]*$ ]] || die "$1 is not NODESxRANKS"; clusters+=("$1") ;;
  esac
  shift
done
[ ${#clusters[@]} -gt 0 ] || clusters=(2x1 4x1 2x2 4x2)
build=$top/build/release
need_packages libbenchmark-dev hdr:benchmark/benchmark.h iproute2 cmd:tc
cd "$top"
quietly "$build/configure.log" cmake --preset release
quietly "$build/build.log" cmake --build "$build" --target bench_predict gshard-calibrate --parallel "$(jobs_at_once)"
echo "| program | cluster | predicted | measured | difference |"
echo "|---|---|---|---|---|"
for cluster in "${clusters[@]}"; do
  nodes=${cluster%x*} ranks=${cluster#*x}
  for rate in 100mbit 1gbit; do
    file=$build/bench/cluster-$cluster-$rate.json
    "$top/bench/emulated_cluster.sh" "$nodes" "$ranks" "$rate" bash -c "mpirun -n $((nodes * ranks)) '$build/examples/gshard-calibrate' -o '$file' >&2 &&
      mpirun -n $((nodes * ranks)) '$build/bench/bench_predict' '$file' '$cluster, $rate' $runs" || {
      status=$?
      [ $status -ne 77 ] || exit 0
      exit $status
    }
  done
done
