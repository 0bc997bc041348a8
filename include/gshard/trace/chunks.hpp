// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Cuts the slots of experts into chunks, so that one chunk of tokens travels while another one is computed.

#include <gshard/base/list_view.hpp>
#include <gshard/trace/builder.hpp>
#include <gshard/trace/custom.hpp>
#include <gshard/trace/embedding.hpp>
#include <gshard/trace/gating.hpp>
#include <gshard/trace/routing.hpp>

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace gshard { inline namespace v0 {

namespace detail {
/// slots(slot, place, before, place_of_chunk): the slots of one chunk: (e, c) becomes (e, c - first) if c is in the chunk, else -1. The
/// extents of the last three operands are the slots of an expert, those before the chunk, and those in it.
struct slots_of_chunk {
  static constexpr std::string_view name = "slots_of_chunk";
  template <class>
  using element = std::int32_t;

  template <class T>
  static void run(local_shard<const T> slot, local_shard<const T> place, local_shard<const T> before, local_shard<const T> kept,
                  local_shard<T> y) {
    const T capacity = T(place.size()), first = T(before.size()), count = T(kept.size());
    for (std::int64_t i = 0; i < slot.size(); ++i) {
      const T c = slot.data[i] % capacity - first;
      y.data[i] = slot.data[i] < 0 || c < 0 || c >= count ? T(-1) : slot.data[i] / capacity * count + c;
    }
  }
};
}  // namespace detail

/// chunk_of(gating, i, n): chunk i of n of the slots of every expert, with the choices that have these slots. A chunk has ceil(C / n)
/// slots; the last ones may stay empty. The chunks together have every choice once. So the sum over the chunks of what their tokens get
/// is that of the whole gating, except for the order of sums if k > 2. Exchanges of one chunk overlap with the products of another, as in
/// Tutel (arXiv 2206.03382).
/// Shapes: gating of G,S,E,C -> gating of G,S,E,ceil(C / n); `aux`, `load` and `overflow` stay those of all chunks.
/// Communicates: nothing.
/// Compile time: that `gating` is the result of a gating verb, send_to_replicas or chunk_of; that i is from 0 to n - 1.
/// Throws: nothing.
/// @see nn::moe, top_k_gating
constexpr gating_result chunk_of(const gating_result& gating, int i, int n) {
  builder& b = *gating.combine.owner;
  gating_result r = gating;
  r.combine = r.dispatch = b.nothing();
  const detail::one_hot_parts choices = detail::choices_of(b, gating, detail::takes_gatings::all, "chunk_of");
  if (n < 1 || i < 0 || i >= n) b.fail(fault::bad_range, "chunk_of", {}, i, n);
  if (b.failed()) return r;
  using detail::route::factors;
  const dim_list combine = gating.combine.get().dims;
  const int place = combine[3], kept = b.ratio_dim(1, place, b.fixed_dim(n)), before = b.linear_dim(kept, i, kept, 0, 0);
  sharding_rule rule;
  rule.set_operands({detail::route::chosen, factors({3}), factors({4}), factors({5})});
  rule.out[0] = detail::route::chosen;
  for (const int f : {3, 4, 5}) rule.block(f);
  const auto numbers = [&](int d) { return detail::emit_iota(b, detail::route::dims({d}), 0); };  // for their extents
  const symbol slot = detail::emit_custom_node(detail::custom_of<detail::slots_of_chunk, std::make_index_sequence<4>>,
                                               std::array{choices.slot, numbers(place), numbers(before), numbers(kept)}, rule,
                                               choices.slot.get().dims, dtype::i32);
  const dtype type = choices.weight.get().type;
  r.combine = detail::emit_one_hot(slot, choices.weight, combine[2], kept, type);
  r.dispatch = detail::emit_one_hot(slot, b.nothing(), combine[2], kept, type);
  return r;
}

}}  // namespace gshard::v0
