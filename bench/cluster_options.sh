# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Shared by cluster.sh and predict.sh (bash, sourced after cmake/packages.sh): options, the build, and the loop over clusters.

# read_options arguments: sets `rounds` if it is given, and `clusters`. `own_option NAME VALUE` reads every other option. It returns the
# number of arguments that it took, or 0.
read_options() {
  clusters=()
  local taken
  while [ $# -gt 0 ]; do
    case $1 in
      --help | -h) usage; exit 0 ;;
      --rounds) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "--rounds takes a number"; rounds=$2; shift ;;
      -*)
        taken=0
        own_option "$1" "${2:-}" || taken=$?
        [ $taken -gt 0 ] || die "unknown option $1; see --help"
        shift $((taken - 1)) ;;
      *) [[ $1 =~ ^[1-9][0-9]*x[1-9][0-9]*$ ]] || die "$1 is not NODESxRANKS"; clusters+=("$1") ;;
    esac
    shift
  done
  [ ${#clusters[@]} -gt 0 ] || clusters=(2x1 4x1 2x2 4x2)
}

# build_for_clusters targets: builds them in $build.
build_for_clusters() {
  build=$top/build/release
  need_packages libbenchmark-dev hdr:benchmark/benchmark.h iproute2 cmd:tc
  cd "$top"
  quietly "$build/configure.log" cmake --preset release
  quietly "$build/build.log" cmake --build "$build" --target "$@" --parallel "$(jobs_at_once)"
}

# on_each_cluster command: runs it for each cluster and each rate, with `cluster`, `nodes`, `ranks` and `rate` set.
on_each_cluster() {
  for cluster in "${clusters[@]}"; do
    nodes=${cluster%x*} ranks=${cluster#*x}
    for rate in 100mbit 1gbit; do "$@"; done
  done
}

# on_cluster command: runs it on the current cluster. Ends the script if clusters cannot be emulated.
on_cluster() {
  local status=0
  "$top/bench/emulated_cluster.sh" "$nodes" "$ranks" "$rate" "$@" || status=$?
  [ $status -ne 77 ] || exit 0
  [ $status -eq 0 ] || exit $status
}
