#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Lines and branches of include/ that the tests have run in a build with coverage. See --help.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../cmake/packages.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/packages.sh"

case ${1:-} in
  "" | -*)
    cat <<'TXT'
usage: tests/coverage.sh BUILD (tests/run.sh --coverage makes the build, runs the tests and calls this)
Prints lines and branches of include/ by folder, the sum, and the 25 files with the least lines. Writes BUILD/coverage.txt: of every file the
lines that did not run, and the conditions that were never true or never false.

- Branches are the two outcomes of every condition in the source, also of the parts of && and ||. A condition that the compiler knows does
  not count. All instances of a template count together.
- An inline function that no test calls counts, a template that no test uses does not: it has no code.
- What the compiler runs does not count. The planner (core, and the verbs of ops, moe, train and models) is mostly run by the compiler:
  static_assert in tests/static checks it. Its numbers here are those of graphs that tests make at run time. The first sum is without the planner.
- A process that is killed, as some tests do, leaves no counts.
TXT
    exit 1 ;;
esac
cd "$top"
llvm-profdata-16 merge -sparse -o "$1/coverage.profdata" "$1"/profiles/*.profraw
rm -rf "$1/coverage"
mkdir "$1/coverage"
# One program at a time, and last the headers that no program uses: llvm-cov confuses functions that one program calls and another one does
# not.
for file in "$1"/tests/test_* "$1/tests/CMakeFiles/gshard_coverage_headers.dir/all_headers.cpp.o"; do
  [ -f "$file" ] || continue
  for format in text lcov; do
    llvm-cov-16 export -format=$format -skip-expansions -skip-functions -instr-profile "$1/coverage.profdata" "$file" \
      -sources "$top/include" >"$1/coverage/$(basename "$file").$format" 2>"$1/coverage.log"
  done
done
python3 "$top/tests/coverage.py" "$1/coverage" "$1/coverage.txt"
