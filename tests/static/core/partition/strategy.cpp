// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/partition/strategy.hpp>

namespace gs = gshard;
using gs::detail::partial_state;

namespace {

constexpr gs::short_list letters(int first, int second) {
  gs::short_list l;
  l.push_back(first);
  l.push_back(second);
  return l;
}

// "AB,BC->AC" over two axes: the first shards A, the second the contracted B.
constexpr gs::node matmul = [] {
  gs::node n;
  n.kind = gs::op::einsum;
  n.inputs = 2;
  n.outputs = 1;
  n.rule.set_operands({letters(0, 1), letters(1, 2)});
  n.rule.set_results({letters(0, 2)});
  return n;
}();
constexpr gs::detail::strategy rows_and_sum = [] {
  gs::detail::strategy s(2);
  for (const int a : {0, 1}) {
    s.factor_of_axis[a] = a;
    s.axes_of_factor[a].push_back(a);
  }
  return s;
}();

constexpr gs::sharding first = gs::detail::sharding_of(matmul.rule.in[0], rows_and_sum, {});
static_assert(first[0].front() == 0 && first[1].front() == 1 && first.partial == 0);
constexpr gs::sharding result = gs::detail::result_sharding(matmul, 0, rows_and_sum, {});
static_assert(result[0].front() == 0 && result[1].empty() && result.partial == 2 && result.pending == gs::reduction::sum);

// Without a strategy the operands are whole, and a partial sum passes through.
constexpr partial_state over_second{.axes = 2, .per_operand = true, .second = 2};
static_assert(over_second.of_operand(0).axes == 0 && over_second.of_operand(1).axes == 2);
static_assert(gs::detail::result_sharding(matmul, 0, gs::detail::strategy(2), over_second).partial == 2);
static_assert(partial_state{.axes = 1, .declared = true}.of_operand(0).axes == 0);

}  // namespace
