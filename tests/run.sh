#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Builds and runs all tests; installs what they need where that is possible. See --help.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../cmake/packages.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/packages.sh"

usage() {
  cat <<'TXT'
usage: tests/run.sh [--asan | --clang | --no-mpi] [--werror] [ctest options]
  --asan     under the address and undefined-behaviour sanitizers, without MPI
  --clang    with clang++-16
  --no-mpi   as on a machine without MPI
  --werror   warnings are errors
Everything else goes to ctest: tests/run.sh -R kernel/ --verbose
Builds in build/tests (build/asan, build/clang, build/no-mpi).
TXT
}

preset=tests
more=()
werror=OFF
for_ctest=()
for arg; do
  case $arg in
    --asan | --no-mpi) preset=${arg#--} ;;
    --clang) preset=clang more=(clang-16 cmd:clang++-16) ;;
    --werror) werror=ON ;;
    --help | -h) usage; exit 0 ;;
    *) for_ctest+=("$arg") ;;
  esac
done

need_packages ${more[@]+"${more[@]}"}

jobs=$(jobs_at_once)
build=$top/build/$preset
cd "$top"
echo "Building the tests in $build ($jobs at a time)"
quietly "$build/configure.log" cmake --preset "$preset" -DGSHARD_WERROR=$werror
quietly "$build/build.log" cmake --build "$build" --target gshard_tests --parallel "$jobs"
exec ctest --test-dir "$build" --output-on-failure --parallel "$jobs" ${for_ctest[@]+"${for_ctest[@]}"}
