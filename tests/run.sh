#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Builds and runs all tests; installs what they need where that is possible. See --help.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../cmake/packages.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/packages.sh"

usage() {
  cat <<'TXT'
usage: tests/run.sh [--asan | --clang | --no-mpi] [--werror] [--only FOLDER] [ctest options]
  --asan     under the address and undefined-behaviour sanitizers, without MPI
  --clang    with clang++-16
  --no-mpi   as on a machine without MPI
  --werror   warnings are errors
  --only FOLDER  build and run the tests of tests/FOLDER alone, such as kernel; not those on MPI ranks and beside other libraries
Everything else goes to ctest, once all tests are built: tests/run.sh -R kernel/ --verbose
Builds in build/tests (build/asan, build/clang, build/no-mpi).
TXT
}

preset=tests
more=()
werror=OFF
target=gshard_tests
for_ctest=()
while [ $# -gt 0 ]; do
  case $1 in
    --asan | --no-mpi) preset=${1#--} ;;
    --clang) preset=clang more=(clang-16 cmd:clang++-16) ;;
    --werror) werror=ON ;;
    --only)
      folders=$(cd "$top/tests" && find . -mindepth 2 -name '*_test.cpp' ! -name '*mpi*' ! -path './architecture/*' | cut -d/ -f2 | sort -u)
      grep -qxF -- "${2:-}" <<<"$folders" || die "--only takes one of the folders" "$folders"
      target=test_$2
      for_ctest+=(-L '^unit$' -R "^$2/" -E '/(by_[a-z]+|simgrid)$')
      shift ;;
    --help | -h) usage; exit 0 ;;
    *) for_ctest+=("$1") ;;
  esac
  shift
done

need_packages ${more[@]+"${more[@]}"}

jobs=$(jobs_at_once)
build=$top/build/$preset
cd "$top"
echo "Building the tests in $build ($jobs at a time)"
quietly "$build/configure.log" cmake --preset "$preset" -DGSHARD_WERROR=$werror
quietly "$build/build.log" cmake --build "$build" --target "$target" --parallel "$jobs"
exec ctest --test-dir "$build" --output-on-failure --parallel "$jobs" ${for_ctest[@]+"${for_ctest[@]}"}
