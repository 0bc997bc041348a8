// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/shards/per_shard.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::fault, gs::symbol, gs::P, gs::none, gs::axes;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

// A region in and out adds no dim, and keeps the sharding.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB", P<"x", none>{});
  bool counts_devices = false;
  const symbol y = gs::per_shard<"x", P<"x", none>>(
      [&](auto t) {
        counts_devices = has_dims(t, "?CB");
        return t;
      },
      x);
  return counts_devices && has_dims(y, "AB") && y.get().layout == x.get().layout;
}));
constexpr auto same = [](auto t) { return t; };
static_assert(fails(fault::unknown_axis, "per_shard", [](builder& b, auto&) { gs::per_shard<"z", P<none>>(same, input(b, "A")); }));
static_assert(fails(fault::no_device_dim, "per_shard",
                    [](builder& b, auto&) { gs::per_shard<"x", P<"x">>(same, input(b, "A", P<none>{})); }));
static_assert(fails(fault::device_dim_left, "per_shard",
                    [](builder& b, auto&) { gs::per_shard<"x", P<none>>(same, input(b, "A", P<"x">{})); }));
static_assert(fails(fault::rank_mismatch, "per_shard",
                    [](builder& b, auto&) { gs::per_shard<"x", P<"x", none>>(same, input(b, "A", P<"x">{})); }));
static_assert(fails(fault::axis_not_first, "per_shard", [](builder& b, auto&) {
  gs::per_shard<"x", P<axes<"y", "x">>>(same, input(b, "A", P<axes<"y", "x">>{}));
}));
static_assert(fails(fault::device_dim_twice, "per_shard", [](builder& b, auto&) {
  gs::per_shard<"x", P<"x", none>>([](auto t) { return gs::einsum<"xa,yb->xyb">(t, t); }, input(b, "A", P<"x">{}));
}));

}  // namespace
