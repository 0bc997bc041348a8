#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# CPU seconds (median of 5) and peak memory of the compiler: planning alone, the translator's training step, everything, and training
# steps of more and more layers (once each).
# usage: bench/compile/run.sh [COMPILER]
set -euo pipefail
cd "$(dirname "$0")/../.."
compiler=${1:-g++}
flags=(-std=c++20 -Iinclude -DGSHARD_HAS_MPI=0 -fsyntax-only -x c++)
unlimited=(-fconstexpr-ops-limit=100000000000 -fconstexpr-loop-limit=100000000)
[[ $("$compiler" --version) != *clang* ]] || { flags+=(-fconstexpr-steps=2000000000) unlimited=(); }
[ -d /usr/include/eigen3 ] && flags+=(-isystem /usr/include/eigen3)

command -v time >/dev/null || { echo "install the package 'time'" >&2; exit 1; }

times=5
measure() {  # name, source, further flags
  for ((i = 0; i < times; ++i)); do command time -f '%U %S %M' "$compiler" "${flags[@]}" "${@:2}" 2>&1 >/dev/null | tail -n 1; done |
    awk '{print $1 + $2, $3}' | sort -n |
    awk -v name="$1" '{t[NR] = $1; m = $2 > m ? $2 : m}
      END {printf "%-32s %6.2f s (least %.2f)  %5.0f MB\n", name, t[int((NR + 1) / 2)], t[1], m / 1024}'
}

empty=$(mktemp --suffix=.cpp) plan=$(mktemp --suffix=.cpp) all=$(mktemp --suffix=.cpp)
trap 'rm -f "$empty" "$plan" "$all"' EXIT
echo '#include <gshard/plan.hpp>' > "$plan"
echo '#include <gshard/gshard.hpp>' > "$all"
echo "$("$compiler" --version | head -n 1), load $(cut -d' ' -f1-3 /proc/loadavg)"
measure "an empty file" "$empty"
measure "gshard/plan.hpp" "$plan"
measure "gshard/gshard.hpp" "$all"
measure "the translator's training step" bench/compile/training_step.cpp
times=1
for layers in 6 12 36; do measure "$layers + $layers layers" bench/compile/moe_transformer.cpp -DLAYERS=$layers "${unlimited[@]}"; done
