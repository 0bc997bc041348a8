#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What the compiler needs: CPU seconds, peak memory, templates; --check compares it with budget.txt. See --help.
set -euo pipefail
exec python3 -B "$(dirname "$0")/budget.py" "$@"
