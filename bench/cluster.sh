#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Collectives and programs on emulated clusters, beside the bound that the links set, Open MPI's collectives and ScaLAPACK. See --help.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../cmake/packages.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/packages.sh"

usage() {
  cat <<'TXT'
usage: bench/cluster.sh [--rounds N] [--only collectives | transformer | moe | product] [NODESxRANKS...]
Builds the benchmarks of clusters, and runs them on emulated clusters of 100 Mbit/s and 1 Gbit/s: 2x1 4x1 2x2 4x2 (nodes x ranks per node).
For each collective it prints the median time of N rounds (5); its ratio to the bound, which is the bytes that a node must receive from others
over the rate of its link; and how many times as long it takes in one level, and by Open MPI's own call.
For each program it prints the median time; its ratios to its bytes between nodes over the rate, to its local steps alone, and to the sum of both;
and the speed-up over one device. A product of matrices runs beside ScaLAPACK's, where that is installed (Debian: libscalapack-openmpi-dev).
Root and iproute2 are needed: see bench/emulated_cluster.sh. All ranks share this machine's cores, so run nothing beside it.
TXT
}
rounds=5
only=
clusters=()
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --rounds) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "--rounds takes a number"; rounds=$2; shift ;;
    --only)
      case ${2:-} in collectives | transformer | moe | product) only=$2 ;; *) die "--only takes collectives, transformer, moe or product" ;; esac
      shift ;;
    *) [[ $1 =~ ^[1-9][0-9]*x[1-9][0-9]*$ ]] || die "$1 is not NODESxRANKS"; clusters+=("$1") ;;
  esac
  shift
done
[ ${#clusters[@]} -gt 0 ] || clusters=(2x1 4x1 2x2 4x2)
build=$top/build/release
need_packages libbenchmark-dev hdr:benchmark/benchmark.h iproute2 cmd:tc
cd "$top"
quietly "$build/configure.log" cmake --preset release
quietly "$build/build.log" cmake --build "$build" --target bench_cluster_collectives bench_cluster_programs --parallel "$(jobs_at_once)"

# on_cluster program [arguments]: on the cluster of this turn. Ends the script where clusters cannot be emulated.
on_cluster() {
  local status=0
  "$top/bench/emulated_cluster.sh" "$nodes" "$ranks" "$rate" mpirun -n $((nodes * ranks)) "$build/bench/$1" "$bits" "$rounds" "${@:2}" || status=$?
  [ $status -ne 77 ] || exit 0
  [ $status -eq 0 ] || exit $status
}
for cluster in "${clusters[@]}"; do
  nodes=${cluster%x*} ranks=${cluster#*x}
  for rate in 100mbit 1gbit; do
    case $rate in 100mbit) bits=1e8 ;; *) bits=1e9 ;; esac
    echo "== $nodes nodes x $ranks ranks, $rate"
    case $only in "" | collectives) on_cluster bench_cluster_collectives ;; esac
    case $only in collectives) ;; *) on_cluster bench_cluster_programs ${only:+"$only"} ;; esac
  done
done
