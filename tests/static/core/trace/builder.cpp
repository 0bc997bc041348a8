// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/trace/builder.hpp>
#include <gshard/ops/rows/softmax.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::dim, gs::fault;

namespace {

// Equal dims share a row of the program's table.
static_assert([] {
  builder b;
  const int e = b.bound_dim('E'), m = b.bound_dim('M');
  const int pair = b.product_dim(e, m), places = b.ratio_dim(2, e, m);
  return e != m && b.bound_dim('E') == e && b.product_dim(e, m) == pair && b.product_dim(m, e) != pair &&
         b.ratio_dim(2.0, e, m) == places && b.fixed_dim(2) == b.fixed_dim(2) && b.program.dims.size() == 6;
}());
static_assert([] {
  builder b;
  const int s = b.bound_dim('S');
  const int of_eight = b.rounded_dim(s, 4, 8);
  return b.rounded_dim(s, 0, 1) == s && of_eight != s && b.rounded_dim(s, 4, 8) == of_eight && b.rounded_dim(s, 0, 8) != of_eight;
}());
// Capacity factors are fractions in lowest terms.
static_assert([] {
  builder b;
  const int s = b.bound_dim('S'), e = b.bound_dim('E');
  const auto fraction = [&](double factor, std::int64_t number, std::int64_t divisor) {
    const dim& d = b.program.dims[std::size_t(b.ratio_dim(factor, s, e))];
    return d.number == number && d.divisor == divisor;
  };
  return fraction(2, 2, 1) && fraction(1.25, 5, 4) && fraction(0.5, 1, 2) && fraction(0, 0, 1);
}());

static_assert([] {
  builder b;
  const gs::dim_list dims = b.dims_of("GSG", "x");
  return dims.size() == 3 && dims[0] == dims[2] && dims[0] != dims[1] && !b.failed() &&
         b.dims_of("", "x").empty();
}());
static_assert(tracing::fails(fault::unknown_letter, "x", [](builder& b, auto&) { b.dims_of("G S", "x"); }));
static_assert(tracing::fails(fault::unknown_letter, "x", [](builder& b, auto&) { b.dims_of("G1", "x"); }));
static_assert(tracing::fails(fault::unknown_letter, "x",
                             [](builder& b, auto&) { b.dims_of("ABCDEFGHI", "x"); }));

// A node lists its results, and results know their node.
static_assert([] {
  builder b;
  const gs::symbol x = tracing::input(b, "AB");
  const std::int32_t first =
      b.add_node(gs::op::softmax, {x.id}, {}, {}, {{x.get().dims, gs::dtype::f32}, {{}, gs::dtype::i32}});
  const gs::node& n = b.program.nodes.back();
  return n.inputs == 1 && n.input(0) == x.id && n.outputs == 2 && n.output() == first &&
         b.result_of_last(1).id == first + 1 && b.program.at(first).producer == 0 &&
         b.program.at(first + 1).type == gs::dtype::i32 && x.get().producer == -1 &&
         b.program.at(first).layout == gs::sharding::unconstrained(2);
}());

// A number in program order distinguishes random operations.
static_assert([] {
  builder b;
  return b.next_random_key() == 0 && b.next_random_key() == 1;
}());

static_assert(tracing::reads(gs::detail::counting(3), {0, 1, 2}) &&
              tracing::reads(gs::detail::counting(2, 5), {5, 6}) && gs::detail::counting(0).empty());

// The table of dims of a program has a limit.
static_assert(tracing::fails(gs::fault::too_many_dims, "", [](gs::builder& b, const gs::parameter_scope&) {
  for (int i = 0; i < 256; ++i) b.fixed_dim(i + 1);
  b.fixed_dim(1);
  if (!b.failed()) b.fixed_dim(1000);
}));

}  // namespace
