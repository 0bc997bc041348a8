// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Wrong calls of verbs with numbers as template arguments: the sentence of the verb, and nothing else.
// expect: gshard: sort\(x, dim = -1, descending = false\) takes a tensor of a program, a dim and a flag
// expect: gshard: sort\(x, dim = -1, descending = false\) takes a tensor of a program, a dim and a flag
// expect: gshard: top_k\(x, k, dim = -1, largest = true\) takes a tensor of a program, a count, a dim and a flag
// expect: gshard: cumsum\(x, dim = -1, exclusive = false, reverse = false\) takes a tensor of a program, a dim and flags
// expect: gshard: gather\(table, ids, dim = 0, batch = 0\) takes two tensors of a program, a dim and a number of dims
// expect: gshard: scatter_add\(x, ids, updates, dim = 0, batch = 0\) takes three tensors of a program, a dim and a numb
// expect: gshard: dynamic_slice\(x, dim, start, size\) takes a tensor of a program, a dim, an int32 scalar of a program
// expect: gshard: dynamic_update_slice\(x, update, dim, start\) takes two tensors of a program, a dim and an int32 sc
// expect: gshard: slice\(x, dim, start, stop, stride = 1\) takes a tensor of a program and integers
// expect: gshard: pad\(x, dim, low, high, interior = 0, fill = 0\) takes a tensor of a program, integers and a number
// expect: gshard: reverse\(x, dim\) takes a tensor of a program and a dim
// expect: gshard: roll\(x, dim, shift\) takes a tensor of a program, a dim and an integer
// expect: gshard: concat\(\{a, b, \.\.\.\}, dim\) takes a list of tensors of a program and a dim
#include <gshard/plan.hpp>

using namespace gshard;

inline constexpr auto model = [](auto&, auto a, auto ids, auto start) {
  const auto use = [](const auto&...) {};
#if defined(MUST_FAIL)
  use(sort<1>(3).values);
  use(sort<1, true, 2>(a).ids);
  use(top_k<1>(a, 1).ids);
  use(cumsum<1>(a, true));
  use(gather<0>(a));
  use(scatter_add<0>(a, ids));
  use(dynamic_slice<0>(a, start));
  use(dynamic_update_slice<0>(a, start));
  use(slice<0, 0>(a));
  use(pad<0, 1, 1>(a, 0.5));
  use(reverse<0>(a, a));
  use(roll<0>(a));
  use(concat<0>(a, 1.0));
#else
  use(sort<1>(a).values, sort<1, true>(a).ids);
  use(top_k<1>(a).ids);
  use(cumsum<1, true>(a));
  use(gather<0>(a, ids));
  use(scatter_add<0>(a, ids, a));
  use(dynamic_slice<0, 1>(a, start));
  use(dynamic_update_slice<0>(a, a, start));
  use(slice<0, 0, 1>(a));
  use(pad<0, 1, 1>(a));
  use(reverse<0>(a));
  use(roll<0, 1>(a));
  use(concat<0>(a, a));
#endif
  return a;
};
using line = mesh<axis<"d">>;
using step = program<model, line, in<"AB">, in<"A", void, std::int32_t>, in<"", void, std::int32_t>>;
static_assert(step::plan.count(op::sort) >= 0);
