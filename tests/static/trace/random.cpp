// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/trace/random.hpp>

#include "../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::symbol;
using tracing::has_dims, tracing::input;

namespace {

// Each has its own key. A rate of 0 adds no operation.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB"), y = gs::dropout(x, 0.1), z = gs::dropout(y, 0.2);
  return has_dims(z, "AB") && b.program.nodes[0].attr.key != b.program.nodes[1].attr.key &&
         gs::own<gs::dropout_attributes>(b.program.nodes[0]).rate == 0.1 && gs::dropout(x, 0).id == x.id &&
         b.program.nodes.size() == 2;
}));
static_assert([] {
  builder b;
  b.fail(gs::fault::unknown_axis, "w");
  return gs::dropout(b.nothing(), 0.5).id < 0;
}());

// Random tensors: each with its own key, in the element type of the parameters.
static_assert(tracing::holds([](builder& b, auto& m) {
  const symbol u = gs::uniform<"AB">(m), n = gs::normal<"B">(m);
  const gs::node &first = b.program.nodes[0], &second = b.program.nodes[1];
  const bool is_normal[]{gs::own<gs::random_attributes>(first).normal, gs::own<gs::random_attributes>(second).normal};
  return has_dims(u, "AB") && has_dims(n, "B") && first.kind == gs::op::random && first.inputs == 0 && !is_normal[0] && is_normal[1] &&
         first.attr.key != second.attr.key && u.get().type == gs::dtype::f32;
}));
static_assert([] {
  builder b;
  const gs::parameter_scope m(b, gs::dtype::bf16);
  gs::uniform<"A">(m);
  const gs::diagnostic& p = b.program.problem;
  return p.what == gs::fault::wrong_type && p.subject.view() == "uniform" && p.word.view() == "type of m" && p.given == gs::dtype::bf16;
}());

}  // namespace
