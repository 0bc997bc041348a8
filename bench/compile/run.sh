#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Measures the compiler: CPU seconds, peak memory, templates; --check compares them with budget.txt. See --help.
set -euo pipefail
exec python3 -B "$(dirname "$0")/budget.py" "$@"
