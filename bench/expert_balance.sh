#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Steps with hot experts on an emulated cluster, before and after experts are placed by their load. See --help.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../cmake/packages.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/packages.sh"

usage() {
  cat <<'TXT'
usage: bench/expert_balance.sh [RATE] [RUNS]
Calibrates an emulated cluster of 4 nodes with links of RATE (100mbit). Runs training steps of a mixture of experts under the workloads W1
and W2, RUNS times (7) each, before and after experts are placed by their load. Prints a table in Markdown: imbalance, measured
medians, predicted times, and the improvements. Root and iproute2 are needed: see bench/emulated_cluster.sh. Run nothing else meanwhile.
TXT
}
case ${1:-} in -*) usage; exit 0 ;; esac
rate=${1:-100mbit} runs=${2:-7}
build=$top/build/release
need_packages libbenchmark-dev hdr:benchmark/benchmark.h iproute2 cmd:tc
cd "$top"
quietly "$build/configure.log" cmake --preset release
quietly "$build/build.log" cmake --build "$build" --target bench_expert_balance gshard-calibrate --parallel "$(jobs_at_once)"
file=$build/bench/cluster-4x1-$rate.json
echo "| workload | cluster | busiest / mean | measured | predicted | improvement | predicted | difference |"
echo "|---|---|---|---|---|---|---|---|"
"$top/bench/emulated_cluster.sh" 4 1 "$rate" bash -c "mpirun -n 4 '$build/examples/gshard-calibrate' -o '$file' >&2 &&
  mpirun -n 4 '$build/bench/bench_expert_balance' '$file' '4x1, $rate' $runs" || {
  status=$?
  [ $status -ne 77 ] || exit 0
  exit $status
}
