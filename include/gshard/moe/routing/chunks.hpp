// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Divides the slots of experts, or the token groups, into chunks, so that the exchange of one chunk overlaps with the products of another.

#include <gshard/core/base/list.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/iota.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/moe/routing/routing.hpp>
#include <gshard/ops/user/custom.hpp>
#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/slice.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace gshard { inline namespace v0 {

namespace detail {
/// slots(slot, place, before, place_of_chunk): the slots of one chunk: (e, c) becomes (e, c - first) if c is in the chunk, else -1. The
/// extents of the last three operands are numbers of slots: of an expert, before the chunk, and in the chunk.
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

/// The program fails if the number of token groups is known, and n does not divide it.
constexpr void check_token_groups(builder& b, int groups, int n, std::string_view verb) {
  const std::int64_t extent = b.known_extent(groups);
  const char letter = b.program.dims[std::size_t(groups)].letter;
  if (extent >= 0 && extent % n != 0) b.fail(fault::uneven_chunks, verb, {&letter, letter ? 1u : 0u}, int(extent), n);
}
}  // namespace detail

/// chunk_of(gating, i, n): chunk i of n of the slots of every expert, with the choices in these slots. A chunk has ceil(C / n) slots; the
/// last ones may stay empty. Every choice is in one chunk. The sum of the chunks' results therefore equals the result of
/// the whole gating, except for the order of sums if k > 2. Exchanges of one chunk overlap with the products of another, as in Tutel
/// (arXiv 2206.03382).
/// Shapes: gating of G,S,E,C -> gating of G,S,E,ceil(C / n); `aux`, `load`, `overflow` and `demand` stay those of all chunks.
/// Communicates: nothing.
/// Compile time: that `gating` is the result of a gating verb, send_to_replicas or chunk_of; that i is from 0 to n - 1.
/// Throws: nothing.
/// @see nn::moe, top_k_gating
constexpr gating_result chunk_of(const gating_result& gating, int i, int n) {
  builder& b = *gating.combine.owner;
  gating_result r = gating;
  r.combine = r.dispatch = b.nothing();
  const detail::one_hot_parts choices = detail::choices_of(b, gating, detail::takes_gatings::all, "chunk_of");
  if (n < 1) b.fail_range("chunk_of", "n", n);
  else if (i < 0 || i >= n) b.fail_range("chunk_of", "i, n", i, n);
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

/// chunks_of_token_groups(x, n): n chunks of a tensor; chunk i has its token groups i, i + n, i + 2 n, ... chunks_of_token_groups(gating,
/// n): the gatings of these groups. Groups are independent, so all choices keep expert, slot and weight. Experts and expert groups compute
/// the same bits for a chunk as for the whole. Each exchange of a chunk, between nodes and within them, has 1/n of the bytes.
/// Shapes: [G,...] -> n of [G/n,...]; gating of G,S,E,C -> n of G/n,S,E,C, whose other results are those of all groups.
/// Communicates: nothing if every device has a multiple of n groups. Otherwise devices exchange groups.
/// Compile time: that `gating` is the result of a gating verb, of send_to_replicas, or a chunk; that x has a dim; that n is at least 1,
/// and divides G, if G is known.
/// Throws: `gshard::error` when the program is bound, if n does not divide G.
/// @see join_token_groups, send_to_expert_groups, nn::moe
constexpr list<symbol> chunks_of_token_groups(here x, int n) {
  constexpr std::string_view verb = "chunks_of_token_groups";
  builder& b = *x.owner;
  const list<symbol> refused(std::size_t(n < 1 ? 1 : n), b.nothing());  // a caller may index all n
  if (!b.has(x) || !detail::check_dim(x, 0, verb)) return refused;
  const int groups = x.get().dims[0];
  if (n < 1) b.fail_range(verb, "n", n);
  else detail::check_token_groups(b, groups, n, verb);
  if (b.failed()) return refused;
  if (n == 1) return {x};
  const int count = b.fixed_dim(n);
  const symbol apart = detail::emit_split(x, 0, b.ratio_dim(1, groups, count), count);
  if (b.failed()) return refused;
  b.program.nodes.back().attr.label = "chunks_of_token_groups";
  const line_of_call kept(b);
  list<symbol> chunks;
  for (int i = 0; i < n; ++i) chunks.push_back(detail::emit_squeeze(slice(here(apart, x), 1, i, i + 1), 1));
  return chunks;
}
constexpr list<gating_result> chunks_of_token_groups(const gating_result& gating, int n) {
  builder& b = *gating.combine.owner;
  const line_of_call kept(b);
  const detail::one_hot_parts choices = detail::choices_of(b, gating, detail::takes_gatings::all, "chunks_of_token_groups");
  if (choices.found && n == 1) return {gating};
  gating_result refused = gating;
  refused.combine = refused.dispatch = b.nothing();
  const list<gating_result> no_chunks(std::size_t(n < 1 ? 1 : n), refused);
  if (!choices.found) return no_chunks;
  const list<symbol> slots = chunks_of_token_groups(choices.slot, n), weights = chunks_of_token_groups(choices.weight, n);
  if (b.failed()) return no_chunks;
  const dim_list combine = gating.combine.get().dims;
  const dtype type = choices.weight.get().type;
  list<gating_result> chunks;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    chunks.push_back(gating);
    chunks[i].combine = detail::emit_one_hot(slots[i], weights[i], combine[2], combine[3], type);
    chunks[i].dispatch = detail::emit_one_hot(slots[i], b.nothing(), combine[2], combine[3], type);
  }
  return chunks;
}

/// join_token_groups({a, b, ...}): joins the chunks of a tensor. The inverse of chunks_of_token_groups.
/// Shapes: n of [G/n,...] -> [G,...].
/// Communicates: nothing if every device has a multiple of n groups. Otherwise devices exchange groups.
/// Compile time: that the first dim of the operands is that of n chunks; ranks, dims and element types.
/// Throws: nothing.
/// @see chunks_of_token_groups
constexpr symbol join_token_groups(list_view<symbol> parts) {
  constexpr std::string_view verb = "join_token_groups";
  builder& b = *parts[0].owner;
  const line_of_call kept(b);
  const std::size_t n = parts.size();
  if (!b.has(parts[0]) || n == 1 || !detail::check_dim(parts[0], 0, verb)) return parts[0];
  const dim part = b.program.dims[std::size_t(parts[0].get().dims[0])];
  if (part.what != dim::kind::ratio || part.number != 1 || part.divisor != 1 || b.known_extent(part.second) != std::int64_t(n))
    b.fail(fault::dims_differ, verb, {}, 0, 0);
  list<symbol> apart;
  for (std::size_t i = 0; i < n && b.has(parts[i]); ++i) apart.push_back(expand_dims(parts[i], 1));
  if (b.failed()) return b.nothing();
  symbol all = apart[0];
  for (std::size_t i = 1; i < n && !b.failed();) {
    list<symbol> next{all};
    while (i < n && next.size() < std::size_t(sharding_rule::most_in)) next.push_back(apart[i++]);
    all = concat(next, 1);
  }
  return b.failed() ? b.nothing() : detail::emit_merge(all, 0, part.first);
}
constexpr symbol join_token_groups(std::initializer_list<symbol> parts) {
  return join_token_groups(list_view(parts.begin(), parts.size()));
}

template <class... Given>
  requires(!detail::call<3, gating_result, int, int>::fits<Given...>)
constexpr auto chunk_of(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: chunk_of(gating, i, n) takes the result of a gating and two integers");
  return detail::refused_gating(detail::refused(given...));
}
template <class... Given>
  requires(!detail::call<2, symbol, int>::fits<Given...> && !detail::call<2, gating_result, int>::fits<Given...>)
constexpr auto chunks_of_token_groups(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: chunks_of_token_groups(x, n) takes a tensor of a program, or the result of a gating, and an integer");
  return list<symbol>{detail::refused(given...)};
}
GSHARD_TAKES(join_token_groups, (detail::call<1, detail::list_of<symbol>>::fits<Given...>),
             "join_token_groups({a, b, ...}) takes a list of tensors of a program")
template <class... Given>
constexpr auto join_token_groups(std::initializer_list<detail::anything>, const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: join_token_groups({a, b, ...}) takes a list of tensors of a program");
  return detail::refused(given...);
}

}}  // namespace gshard::v0
