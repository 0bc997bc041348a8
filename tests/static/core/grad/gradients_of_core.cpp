// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/grad/gradients_of_core.hpp>
#include <gshard/core/trace/einsum.hpp>

#include "../../tracing.hpp"

#include <array>

namespace gs = gshard;
using gs::builder, gs::dtype, gs::symbol, gs::einsum;
using tracing::has_dims, tracing::input, tracing::count;

namespace {

// Each operand's gradient is an einsum; it is broadcast along indices that only this operand has, and zero off a diagonal.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB"), w = input(b, "BC");
  const gs::list<symbol> d = gs::gradients(gs::sum(einsum<"ab,bc->ac">(x, w)), std::array{x, w});
  return has_dims(d[0], "AB") && has_dims(d[1], "BC");
}));
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AA");
  return has_dims(gs::gradients(gs::sum(einsum<"aa->a">(x)), {x})[0], "AA") && count(b.program, gs::op::iota) == 2;
}));
// A scaled tensor, a cast one, and one of another shape.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB");
  const symbol y = gs::cast(2.0 * gs::replicate(gs::expand_dims(x, 0)), dtype::f64);
  const gs::list<symbol> d = gs::gradients(gs::sum(y), {x});
  return has_dims(d[0], "AB") && d[0].get().type == dtype::f32;
}));

}  // namespace
