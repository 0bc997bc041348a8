// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/plan.hpp>

#include "../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::fault, gs::in, gs::none, gs::P, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB"), y = input(b, "B");
  return has_dims(gs::select(gs::less(x, y), x, y), "AB") && has_dims(gs::equal(x, x), "AB");
}));
// Written out, every turn lying as the first operand does.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB", P<"x", none>{});
  const symbol y = gs::repeat<3>(x, [](symbol s) { return gs::relu(s) + s; });
  return has_dims(y, "AB") && b.program.nodes.size() == 6 && y.get().layout == x.get().layout && gs::repeat<0>(x, [](symbol s) { return s; }).id == x.id;
}));
static_assert(fails(fault::dims_differ, "repeat", [](builder& b, auto&) {
  gs::repeat<2>(input(b, "AB"), [](symbol s) { return gs::sum<"ab->a">(s); });
}));

// A chain of layers whose state stays cut, whatever a turn does in between.
inline constexpr auto square = [](auto&, auto x, auto w) {
  return gs::repeat<4>(x, [=](symbol s) { return gs::einsum<"bm,mn->bn">(s, w); });
};
using layers = gs::program<square, gs::mesh<gs::axis<"x">>, in<"BM", P<"x", none>>, in<"MM">>;
static_assert(layers::plan.collectives() == 0 && layers::plan.count(gs::op::einsum) == 4);

}  // namespace
