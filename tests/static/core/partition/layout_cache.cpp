// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/plan.hpp>

#include "../../soundness.hpp"

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;

// A resharded tensor is used again by the next operation: the border for two convolutions of one window, the moved tensor for two readers.
inline constexpr auto two_filters = [](auto&, auto x, auto v, auto w) {
  return gs::conv<"BXI,xIO->BXO">(x, v) + gs::conv<"BXI,xIO->BXO">(x, w);
};
using filters = gs::program<two_filters, mesh, in<"BXI", P<none, "x", none>>, in<"KIO">, in<"KIO">>;
static_assert(filters::plan.count(op::collective_permute) == 1 && filters::plan.collectives() == 1 && soundness::is_sound(filters::plan));

// A replicated dim is read through a window without an exchange.
using local = gs::program<two_filters, mesh, in<"BXI", P<"x", none, none>>, in<"KIO">, in<"KIO">>;
static_assert(local::plan.collectives() == 0 && soundness::is_sound(local::plan));

// A window that does not reach beyond a block of known extents is a local copy.
inline constexpr auto middle = [](auto&, auto x) { return gs::annotate<P<"x">>(gs::slice(x, 0, 2, 14)); };
using inside = gs::program<middle, gs::mesh<gs::axis<"x", 2>>, in<"A", P<"x">>, gs::extent<'A', 16>>;
static_assert(inside::plan.collectives() == 0 && inside::plan.count(op::slice) == 1);

}  // namespace
