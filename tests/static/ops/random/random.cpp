// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/random/random.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::symbol;
using tracing::has_dims;

namespace {

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
