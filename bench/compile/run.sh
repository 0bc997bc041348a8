#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What the compiler needs: CPU seconds (median and least), peak memory, and, where there is a clang to count them, template instantiations.
# Planning alone, everything, 1, 10 and 50 distinct einsums in a program and on tensors (with code at -O2, what users wait for), the
# translator's training step, and training steps of more and more layers.
# usage: bench/compile/run.sh [COMPILER]
set -euo pipefail
cd "$(dirname "$0")/../.."
compiler=${1:-g++}
counter=$(command -v clang++-19 clang++-16 clang++ | head -n 1 || true)
[[ $("$compiler" --version) != *clang* ]] || counter=$compiler
flags=(-std=c++20 -Iinclude -DGSHARD_HAS_MPI=0 -x c++)
[ -d /usr/include/eigen3 ] && flags+=(-isystem /usr/include/eigen3)
limits() { [[ $("$1" --version) == *clang* ]] && echo -fconstexpr-steps=2000000000 || echo -fconstexpr-ops-limit=100000000000 -fconstexpr-loop-limit=100000000; }

command -v time >/dev/null || { echo "install the package 'time'" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

instantiations() {  # flags, source
  [ -n "$counter" ] || { echo -; return; }
  # shellcheck disable=SC2046
  "$counter" "${flags[@]}" $(limits "$counter") -fsyntax-only -ftime-trace="$work/trace.json" -ftime-trace-granularity=0 "$@" 2>/dev/null &&
    { grep -oE '"name":"Instantiate(Class|Function)"' "$work/trace.json" || true; } | wc -l || echo -
}
times=3 output=(-fsyntax-only)
measure() {  # name, flags and source
  for ((i = 0; i < times; ++i)); do
    # shellcheck disable=SC2046
    command time -f '%U %S %M' "$compiler" "${flags[@]}" $(limits "$compiler") "${output[@]}" "${@:2}" 2>&1 >/dev/null | tail -n 1
  done | awk '{print $1 + $2, $3}' | sort -n |
    awk -v name="$1" -v count="$(instantiations "${@:2}")" '{t[NR] = $1; m = $2 > m ? $2 : m}
      END {printf "%-32s %8.2f s %8.2f s %7.0f MB %15s\n", name, t[int((NR + 1) / 2)], t[1], m / 1024, count}'
}

# n einsums, each over other letters: in a program, or on tensors.
einsums() {
  local letters=(a b c d e f g h i j k l m n o p q r s t u v w x y z A B C D E F G H I J K L M N O P Q R S T U V W X Y Z)
  local call='x = gs::einsum<"%s">(x, w);\n' head='inline constexpr auto model = [](auto& m, auto x) { const auto w = m.param("w", "AA", P<none, "x">{}, {});' \
    tail='return x; };
      using p = gs::program<model, gs::mesh<gs::axis<"x">>, gs::in<"BA">>;
      void run(gs::executable<p>& f, const std::vector<float>& x) { f(x); }'
  [ "$2" = program ] || { call='static_cast<void>(gs::einsum<"%s">(x, w));\n' tail='}'
    head='void run(const gs::tensor<float, P<"x", none>>& x, const gs::tensor<float, P<none, "x">>& w) {'; }
  printf '#include <gshard/gshard.hpp>\nnamespace gs = gshard;\nusing gs::P, gs::none;\n%s\n' "$head"
  for ((i = 0; i < $1; ++i)); do
    # shellcheck disable=SC2059
    printf "$call" "${letters[i]}${letters[i + 1]},${letters[i + 1]}${letters[i + 2]}->${letters[i]}${letters[i + 2]}"
  done
  echo "$tail"
}

echo "$("$compiler" --version | head -n 1); instantiations: ${counter:-no clang}; load $(cut -d' ' -f1-3 /proc/loadavg)"
printf '%-32s %10s %10s %10s %15s\n' "" median least memory instantiations
: > "$work/empty.cpp"
echo '#include <gshard/plan.hpp>' > "$work/plan.cpp"
echo '#include <gshard/gshard.hpp>' > "$work/all.cpp"
measure "an empty file" "$work/empty.cpp"
measure "gshard/plan.hpp" "$work/plan.cpp"
measure "gshard/gshard.hpp" "$work/all.cpp"
measure "the translator's training step" bench/compile/training_step.cpp
times=1
for layers in 6 12 36; do measure "$layers + $layers layers" -DLAYERS=$layers bench/compile/moe_transformer.cpp; done
output=(-O2 -c -o /dev/null)
for where in program tensors; do
  for n in 1 10 50; do
    einsums "$n" "$where" > "$work/einsums.cpp"
    measure "$n einsums, $where" "$work/einsums.cpp"
  done
done
