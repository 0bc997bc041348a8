#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Collectives and programs on emulated clusters, compared with the bound of the links, Open MPI's collectives and ScaLAPACK. See --help.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../cmake/packages.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/packages.sh"
# shellcheck source=cluster_options.sh
source "$top/bench/cluster_options.sh"

usage() {
  cat <<'TXT'
usage: bench/cluster.sh [--rounds N] [--only collectives | transformer | moe | product] [NODESxRANKS...]
Builds the benchmarks of clusters, and runs them on emulated clusters of 100 Mbit/s and 1 Gbit/s: 2x1 4x1 2x2 4x2 (nodes x ranks per node).
For each collective it prints the median time of N rounds (5); its ratio to the bound, which is the bytes that a node must receive from others
over the rate of its link; and how many times as long it takes in one level, and by Open MPI's own call.
For each program it prints the median time; its ratios to its bytes between nodes over the rate, to its local steps alone, and to the sum of both;
and the speed-up over one device. A product of matrices is compared with ScaLAPACK's, where that is installed (Debian: libscalapack-openmpi-dev).
Root and iproute2 are needed: see bench/emulated_cluster.sh. All ranks share this machine's cores, so run nothing else meanwhile.
TXT
}
rounds=5
only=
own_option() {
  [ "$1" = --only ] || return 0
  case $2 in collectives | transformer | moe | product) only=$2 ;; *) die "--only takes collectives, transformer, moe or product" ;; esac
  return 2
}
read_options "$@"
build_for_clusters bench_cluster_collectives bench_cluster_programs

# run program [arguments]
run() { on_cluster mpirun -n $((nodes * ranks)) "$build/bench/$1" "$bits" "$rounds" "${@:2}"; }
turn() {
  case $rate in 100mbit) bits=1e8 ;; *) bits=1e9 ;; esac
  echo "== $nodes nodes x $ranks ranks, $rate"
  case $only in "" | collectives) run bench_cluster_collectives ;; esac
  case $only in collectives) ;; *) run bench_cluster_programs ${only:+"$only"} ;; esac
}
on_each_cluster turn
