#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Builds the benchmarks and runs them in turn with the peers that are installed. Writes a table of ratios, build/release/bench/results.json
# and results.svg. See --help.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../cmake/packages.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/packages.sh"

more=(libbenchmark-dev hdr:benchmark/benchmark.h python3 cmd:python3)
build=$top/build/release
compare=(python3 "$top/bench/compare.py" --build "$build")

# Read the options before anything is built, so that help and mistakes are answered at once.
is_there cmd:python3 || need_packages "${more[@]}"
for arg; do
  case $arg in --help | -h) exec "${compare[@]}" --help ;; esac
done
built=$("${compare[@]}" --targets "$@")
read -ra targets <<<"$built"

need_packages "${more[@]}"
cd "$top"
echo "Building ${targets[*]} in $build (the first time takes a few minutes)"
quietly "$build/configure.log" cmake --preset release
quietly "$build/build.log" cmake --build "$build" --target "${targets[@]}" --parallel "$(jobs_at_once)"
mpirun=
if command -v mpirun >/dev/null; then
  mpirun=mpirun
  if mpirun --version 2>&1 | grep -qiE 'open.?mpi|openrte'; then
    mpirun+=' --quiet --oversubscribe --bind-to none --mca mpi_yield_when_idle 1'
    [ "$(id -u)" -ne 0 ] || mpirun+=' --allow-run-as-root'
  fi
fi
exec "${compare[@]}" --mpirun="$mpirun" "$@"
