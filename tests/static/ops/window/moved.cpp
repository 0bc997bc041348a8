// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/grad/differentiate.hpp>
#include <gshard/ops/window/moved.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/reverse.hpp>
#include <gshard/ops/window/roll.hpp>
#include <gshard/ops/window/slice.hpp>

#include "../../tracing.hpp"

#include <cstddef>

namespace gs = gshard;
using gs::builder, gs::symbol;
using tracing::has_dims, tracing::input, tracing::window_of_last;

namespace {

// If the extent does not change, the dim does not change.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB");
  return has_dims(gs::pad(x, 0, 1, -1), "AB") && has_dims(gs::reverse(x, 1), "AB") && has_dims(gs::roll(x, 0, 7), "AB") &&
         window_of_last(b, 0).wrap;
}));
// The gradient reads through the inverse windows. The gradient of the gradient reads as the operation does.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB");
  for (const symbol y : {gs::slice(x, 0, 1, 8, 2), gs::pad(x, 0, 1, 2, 3), gs::reverse(x, 0), gs::roll(x, 0, 2)}) {
    const gs::node n = b.program.nodes[std::size_t(y.get().producer)];
    const symbol c = gs::detail::emit_constant(gs::detail::pointwise_constant<1>, y);
    const symbol dx = gs::gradients(gs::einsum<"ab,ab->">(y, c), {x})[0];
    const symbol again = gs::gradients(gs::einsum<"ab,ab->">(dx, x), {c})[0];
    const gs::node* last = nullptr;
    for (const gs::node& m : b.program.nodes)
      if (m.kind == n.kind) last = &m;
    if (dx.get().dims != x.get().dims || again.get().dims != y.get().dims || last->output() == y.id) return false;
    if (!(last->rule.windows == n.rule.windows)) return false;
  }
  return true;
}));
// One node reads several dims. For a single dim it is the node of the verb for one dim.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB"), y = gs::slice(x, {{1, 2, 9, 3}, {0, 1, 5}});
  const bool reads = b.program.nodes.size() == 1 && window_of_last(b, 1).stride == 3 && window_of_last(b, 0).low == 1;
  return reads && has_dims(y, "##") && has_dims(gs::pad(x, {{0, 1, -1}, {1, 2, 1, 1}}, 0.5), "A+") &&
         b.program.nodes.back().attr.fill == 0.5 && has_dims(gs::reverse(x, {0, 1}), "AB") && window_of_last(b, 0).stride == -1 &&
         window_of_last(b, 1).stride == -1 && has_dims(gs::roll(x, {{1, 3}, {0, -2}}), "AB") && window_of_last(b, 0).low == 2 &&
         b.program.nodes.size() == 4;
}));
static_assert(tracing::alike(
    [](builder& b) {
      const symbol x = input(b, "AB");
      gs::slice(x, 1, 2, 9, 3), gs::pad(x, 0, 2, 1, 1, 0.5), gs::reverse(x, 0), gs::roll(x, 1, 3);
    },
    [](builder& b) {
      const symbol x = input(b, "AB");
      const gs::list<int> dims{0};
      gs::slice(x, {{1, 2, 9, 3}}), gs::pad(x, {{0, 2, 1, 1}}, 0.5), gs::reverse(x, dims), gs::roll(x, {{1, 3}});
    }));

}  // namespace
