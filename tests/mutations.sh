#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Puts small faults into a copy of the sources, activates one at a time, and reports which test finds each. See --help.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../cmake/packages.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/packages.sh"

usage() {
  cat <<'TXT'
usage: tests/mutations.sh [--list] [--only N,M...] [--source DIR] [--targets "TARGET..."] [--tests REGEX] [--jobs N]
  --list        prints the faults of tests/mutations/faults.txt
  --only N,M    only these faults
  --source DIR  in another checkout of gshard. Faults whose line it lacks are not applicable; a header may have another path there
  --targets     builds and runs only these test executables; the default is all of units and of MPI ranks
  --tests REGEX  runs only the built tests whose ctest names match
  --jobs N      compiles and tests at once; the default depends on the machine

All faults are compiled into one copy of the sources, so the tests are built once. A fault is a condition on the number in GSHARD_MUTATION,
which is false in constant evaluation. The tests that entries of the list name run once without a fault, to record the faults that each
reaches. For each fault, the tests that reach it run until one fails: first the tests of its entry, then those of its folder. The other
tests run only for faults that these do not find. Tests on MPI ranks run on 2. A test that hangs counts as failed, and is reported.

Faults have no effect on static tests. A fault that only static tests cover is therefore missed.
Prints a table, and ends with 1 if a fault is missed. Builds in build/mutations; results.txt and the output of tests are there.
TXT
}

source=$top
only=
jobs=
tests=
targets=()
for folder in cases cluster core eager exec io models moe onnx ops runtime sim survive testing train; do targets+=("test_$folder"); done
targets+=(test_mpi test_misuse test_misuse_other_build test_under_faults_all)
while [ $# -gt 0 ]; do
  case $1 in
    --list) exec python3 "$top/tests/mutations/mutations.py" list "$top/tests/mutations/faults.txt" ;;
    --only)
      [[ ${2:-} =~ ^[0-9]+(,[0-9]+)*$ ]] || die "--only takes numbers of faults, as in 3,17"
      only=${2//,/ }
      shift ;;
    --source)
      [ -f "${2:-}/include/gshard/gshard.hpp" ] || die "--source takes a checkout of gshard"
      source=$(cd "$2" && pwd)
      shift ;;
    --targets) read -ra targets <<<"${2:?--targets takes names of targets}"; shift ;;
    --tests) tests=${2:?--tests takes a regular expression}; shift ;;
    --jobs)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "--jobs takes a number"
      jobs=$2
      shift ;;
    --help | -h) usage; exit 0 ;;
    *) usage >&2; die "Unknown: $1" ;;
  esac
  shift
done

need_packages
jobs=${jobs:-$(jobs_at_once)}
list=$top/tests/mutations/faults.txt
if [ "$source" = "$top" ]; then places=exact name=here; else places=any name=$(basename "$source")-$(cksum <<<"$source" | cut -d' ' -f1); fi
work=$top/build/mutations/$name
mkdir -p "$work"
python3 "$top/tests/mutations/mutations.py" copy "$list" "$source" "$work/source" "$places"
cp -p "$top/tests/mutations/mutation.hpp" "$work/mutation.hpp"
echo "Building the tests with all faults in $work ($jobs at a time)"
cd "$work/source"
quietly "$work/configure.log" cmake --preset tests -B "$work/build" -DGSHARD_BUILD_EXAMPLES=OFF \
  "-DCMAKE_CXX_FLAGS=-w -include \"$work/mutation.hpp\""
quietly "$work/build.log" cmake --build "$work/build" --target "${targets[@]}" --parallel "$jobs"
# shellcheck disable=SC2086  # numbers, split at blanks
exec python3 "$top/tests/mutations/mutations.py" run "$list" "$work/source" "$work/build" "$jobs" "$tests" $only
