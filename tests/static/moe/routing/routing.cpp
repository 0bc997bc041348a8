// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/moe/routing/gating.hpp>
#include <gshard/moe/routing/routing.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
namespace route = gs::detail::route;
namespace op = gs::op;
using gs::builder, gs::symbol;
using tracing::input;

namespace {

static_assert(tracing::reads(route::mask, {route::group, route::token, route::expert, route::place}));
static_assert(route::base().is_blocked(route::choice) && route::base().is_blocked(route::place) &&
              !route::base().is_blocked(route::expert));

// Only a one-hot tensor remembers its operands.
static_assert(tracing::holds([](builder& b, auto&) {
  const gs::gating_result r = gs::top2_gating(input(b, "GSE"));
  const auto combine = gs::detail::one_hot_of(r.combine), dispatch = gs::detail::one_hot_of(r.dispatch);
  return combine.found && dispatch.found && combine.slot.id == dispatch.slot.id && combine.weight.id >= 0 &&
         dispatch.weight.id < 0 && !gs::detail::one_hot_of(r.load).found &&
         !gs::detail::one_hot_of(input(b, "GSEC")).found;
}));

// The rules: an axis that shards experts makes combine a partial sum and leaves dispatch complete. An axis that shards groups does neither.
static_assert(tracing::holds([](builder& b, auto&) {
  const gs::gating_result r = gs::top2_gating(input(b, "GSE"));
  const auto hot = gs::detail::one_hot_of(r.combine);
  const symbol x = input(b, "GSM");
  const gs::dim_list dims = [&] {
    gs::dim_list l;
    for (int d : {r.combine.get().dims[2], r.combine.get().dims[0], r.combine.get().dims[3], x.get().dims[2]})
      l.push_back(d);
    return l;
  }();
  const gs::short_list side = route::factors({route::expert, route::group, route::place, route::model});
  const symbol h = gs::detail::emit_dispatch(hot.slot, hot.weight, x, route::tokens, side, dims);
  const gs::sharding_rule dispatch = b.program.nodes.back().rule;
  gs::detail::emit_combine(hot.slot, hot.weight, h, side, route::tokens, x.get().dims);
  const gs::sharding_rule combine = b.program.nodes.back().rule;
  return tracing::has_dims(h, "EGCM") && dispatch.out[0].contains(route::expert) &&
         !combine.out[0].contains(route::expert) && combine.in[0].contains(route::expert) &&
         dispatch.out[0].contains(route::group) && combine.out[0].contains(route::group);
}));

}  // namespace
