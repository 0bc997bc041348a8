// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/shards/shards.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::fault, gs::symbol, gs::P, gs::none;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

// Shards along an axis are a tensor with one more dim, which that axis alone shards; leaving restores the tensor.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB", P<none, "x">{});
  const int axis = gs::detail::axis_called(b, "x", "per_shard");
  const symbol t = gs::detail::emit_entered(x, axis);
  const gs::detail::shards s = gs::detail::shards_along(t, "x", "shift");
  return has_dims(t, "?AC") && s.at == 0 && s.axis == axis && t.get().layout.dim_of(axis) == 0 &&
         has_dims(gs::detail::emit_left(t, axis, x.get().layout), "AB");
}));
static_assert(fails(fault::unknown_axis, "shift", [](builder& b, auto&) { gs::detail::shards_along(input(b, "A"), "z", "shift"); }));
static_assert(fails(fault::no_device_dim, "shift", [](builder& b, auto&) {
  gs::detail::shards_along(input(b, "A", P<"x">{}), "x", "shift");
}));

}  // namespace
