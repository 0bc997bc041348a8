// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Manual regions (JAX's shard_map): verbs on the shards of each device, with explicit collectives.
//
// They are the paper's auto_to_manual and its reverse (arXiv 2006.16668 section 3.2). The shards of a tensor are a tensor with one more
// dim, which counts the devices. [B, M] with B sharded over "x" is [X, B / X, M], with one index of X on each device. Therefore every verb
// works on shards, has its gradient and is part of the plan.

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/ir/spec.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/ops/shards/shards.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <utility>

namespace gshard { inline namespace v0 {

/// per_shard<"x", P<"x", none>>(body, x, w, ...): a region in which `body` works on the shards along mesh axis "x"; the shard_map of JAX.
///
/// If an operand [B, M] is annotated as sharded over "x", body gets its shards [X, B / X, M]: dim 0 counts the devices. Other operands are
/// passed unchanged. body(symbol...) uses any verbs; each device computes on its own shards. all_reduce<"x">, all_gather<"x">,
/// reduce_scatter<"x">, all_to_all<"x">, shift<"x"> and halo<"x"> communicate. At the end of the region, X of a result is merged with the
/// dim that the spec shards over "x". A result without X is the same on all devices, and its spec does not name "x". A body with several
/// results returns a std::tuple, and the region has as many specs. Regions over several axes are nested. If both axes shard one dim, the
/// region over the first axis of this dim is the outer one.
/// Shapes: as above.
/// Communicates: as the verbs of body. Entering and leaving adds reshards along other axes only. Gradients are those of the verbs.
/// Compile time: ranks and axes; that a result's spec names "x" if and only if the result has X.
/// Throws: `gshard::error` when the program is bound, if "x" does not shard a dim evenly.
/// @see call_on_shards for a C++ function of shards
template <fixed_string Axis, class... Specs, class Body, class... Symbols>
  requires(sizeof...(Specs) > 0 && (std::same_as<Symbols, symbol> && ...))
constexpr auto per_shard(const Body& body, here first, Symbols... rest) {
  builder& b = *first.owner;
  const code_place place = b.place;
  const int axis = detail::axis_called(b, Axis.view(), "per_shard");
  const std::array<symbol, 1 + sizeof...(rest)> entered{detail::emit_entered(first, axis), detail::emit_entered(rest, axis)...};
  const auto leave = [&]<class Spec>(symbol y, Spec) {
    const sharding layout = b.failed() ? sharding{} : b.resolve(Spec::named, "per_shard");
    if (!b.failed()) b.place = place;
    return b.failed() ? b.nothing() : detail::emit_left(y, axis, layout);
  };
  if constexpr (sizeof...(Specs) == 1) {
    return b.failed() ? b.nothing() : leave(std::apply(body, entered), Specs{}...);
  } else {
    std::array<symbol, sizeof...(Specs)> results{};
    results.fill(b.nothing());
    const auto listed = [](const auto&... y) { return std::array<symbol, sizeof...(Specs)>{y...}; };
    if (!b.failed()) results = std::apply(listed, std::apply(body, entered));
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple{leave(results[I], Specs{})...};
    }(std::make_index_sequence<sizeof...(Specs)>{});
  }
}

template <fixed_string Axis, class... Specs, class... Given>
  requires(sizeof...(Specs) == 0 || !detail::before_tensors<64, detail::function>::fits<Given...>)
constexpr auto per_shard(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: per_shard<\"x\", P<\"x\", none>>(body, x, ...) takes an axis, specs, a function, and tensors of a program");
  return detail::refused(given...);
}
// The name before that of call_on_shards.
template <auto F, class Spec, class... Given>
constexpr auto per_shard(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: per_shard of a C++ function is call_on_shards<f, \"B@data,M\">(x, ...)");
  return detail::refused(given...);
}
template <auto F, fixed_string Letters, class Spec, class... Given>
constexpr auto per_shard(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: per_shard of a C++ function is call_on_shards<f, \"B@data,M\">(x, ...)");
  return detail::refused(given...);
}

}}  // namespace gshard::v0
