#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Which lines and branches of include/ the tests have run in a build with coverage. See --help.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../cmake/packages.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/packages.sh"

case ${1:-} in
  "" | -*)
    cat <<'TXT'
usage: tests/coverage.sh BUILD (tests/run.sh --coverage makes the build, runs the tests and calls this)
Prints lines and branches of include/ by folder, the sum, and the 25 files with the least lines. Writes BUILD/coverage.json and
BUILD/coverage.txt, which has the lines of every file that did not run.

- Branches are those of the source: not the ways that an exception may take out of a call, nor those on lines without code. gcovr does not
  see which branches of a line are for exceptions if no test runs it, and never for the elements of a list in braces: they count as branches
  that did not run. So the true number is higher.
- An inline function that no test calls counts, a template that no test uses does not: it has no code.
- What the compiler runs does not count. The planner (trace, grad, pass, ir, nn, optim) is mostly run by the compiler: static_assert in
  tests/static checks it. Its numbers here are those of graphs that tests make at run time. The first sum is without the planner.
TXT
    exit 1 ;;
esac
cd "$top"
# With a limit: gcovr 5.2 waits for ever after an error.
quietly "$1/gcovr.log" timeout 1200 gcovr --root "$top" --filter "$top/include/" --object-directory "$1" --exclude-unreachable-branches \
  --gcov-ignore-parse-errors -j "$(jobs_at_once)" --json "$1/coverage.json" --txt "$1/coverage.txt" "$1"
python3 "$top/tests/coverage.py" "$1/coverage.json"
