// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Looped einsums: overlap an einsum with its communication, block by block (XLA's windowed einsum; arXiv 2006.16668 section 3.3.2).
//
// Blocks of one operand, or of the partial result, travel around a ring of devices while the einsum computes. A device then holds two
// blocks instead of the complete tensor.

#include <gshard/core/ir/graph.hpp>
#include <gshard/core/partition/operands.hpp>
#include <gshard/core/partition/plan_writer.hpp>
#include <gshard/core/partition/strategy.hpp>
#include <gshard/core/reshard/cost.hpp>
#include <gshard/core/reshard/reshard.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// How an einsum is looped.
struct einsum_loop {
  static constexpr int none = -1, result = 2;
  int ring_operand = none;  ///< 0 or 1: this operand travels; `result`: the partial sums travel.
  std::uint32_t axes = 0;   ///< of the ring
  std::int32_t from = -1;   ///< the form of the operand that travels
  sharding to;              ///< of the result
};

/// True if shards of a tensor in this sharding are known to have more than `bytes` bytes.
constexpr bool exceeds(const extents& e, const value& v, const sharding& layout, std::int64_t bytes) {
  for (int d = 0; d < v.rank(); ++d)
    if (!e.knows_dim(v.dims[d])) return false;
  return (layout.used() & ~e.known_axes) == 0 && shard_elements(v.dims, layout, e) * size_of(v.type) > bytes;
}

/// True if the program allows a tensor to be resharded for its reader, by may_move.
constexpr bool may_move(const graph& g, std::int32_t tensor) {
  for (;;) {
    const std::int32_t producer = g.at(tensor).producer;
    if (producer < 0) return false;
    const node& n = g.nodes[std::size_t(producer)];
    if (n.attr.may_move) return true;
    if (n.inputs != 1 || !(is_linear(n) || may_pass_partial(n))) return false;
    tensor = n.in[0];  // partial sums pass through the node
  }
}

/// A loop over the larger operand that one all_gather would replicate, if it exceeds `bytes`.
constexpr einsum_loop loop_over_operand(const planning& p, const node& n, const partitioning& chosen, strictness implicit,
                                        std::int64_t bytes) {
  einsum_loop best;
  std::int64_t most = bytes;
  for (int i = 0; i < 2; ++i) {
    const value& v = p.g.at(n.input(i));
    if (!exceeds(p.e, v, {}, bytes)) continue;
    const sharding whole = operand_form(p, n, i, chosen.how, chosen.partial).layout;
    std::int32_t from = -1;
    if (!exceeds(p.e, v, whole, most) || p.cache.cost_of_move(n.input(i), whole, &from) == 0) continue;
    if (p.cache.is_repeated(n.input(i), whole)) continue;
    if (implicit != strictness::automatic && !n.place.gradient && !may_move(p.g, n.input(i))) continue;
    const sharding& now = p.cache.at(from).layout;
    const std::uint32_t axes = now.used() & ~whole.used();
    const move_list way = plan_reshard(p.cache.at(from), now, whole, p.e);
    if (way.count != 1 || way.moves[0].kind != op::all_gather || !now.without(axes).same_layout(whole)) continue;
    // Devices start with different blocks. Therefore a sum over them must not be replicated: its replicas would differ in rounding.
    bool sums = false;
    for (int d = 0; d < v.rank(); ++d) sums = sums || (!now[d].same(whole[d]) && !n.rule.out[0].contains(n.rule.in[i][d]));
    const sharding made = result_sharding(n, 0, chosen.how, chosen.partial);
    if (sums && (axes & ~(made.used() | made.partial))) continue;
    most = shard_elements(v.dims, whole, p.e) * size_of(v.type);
    best = {i, axes, from, made};
  }
  return best;
}

/// True if all readers of an einsum's result accept a complete sum that is scattered.
constexpr bool may_scatter_result(const planning& p, std::int32_t result, strictness implicit) {
  if (!p.needs_complete[std::size_t(result)] || implicit == strictness::strict) return false;
  for (const port& out : p.g.outputs)
    if (out.value == result) return false;
  for (const node& n : p.g.nodes)
    if (traits(n.kind).annotates && n.input(0) == result && p.g.at(n.output()).layout.partial) return false;
  return true;
}

/// True if a tensor of an einsum of two operands is known to have more than `bytes` bytes, so that it may be looped.
constexpr bool may_loop(const planning& p, const node& n, std::int64_t bytes) {
  if (!is_contraction(n) || n.rule.blocked) return false;
  bool found = exceeds(p.e, p.g.at(n.output()), {}, bytes);
  for (int i = 0; i < 2; ++i) found = found || exceeds(p.e, p.g.at(n.input(i)), {}, bytes);
  return found;
}

/// The loop of an einsum of two operands with a chosen strategy, or none. It is over an operand that would be gathered, or over a partial
/// result that would be scattered. Either has more than `bytes` bytes.
constexpr einsum_loop choose_loop(const planning& p, const node& n, const partitioning& chosen, strictness implicit, std::int64_t bytes) {
  if (!may_loop(p, n, bytes)) return {};
  if (n.in[0] != n.in[1])
    if (const einsum_loop found = loop_over_operand(p, n, chosen, implicit, bytes); found.ring_operand != einsum_loop::none) return found;
  const value& v = p.g.at(n.output());
  if (!exceeds(p.e, v, {}, bytes)) return {};
  const sharding made = result_sharding(n, 0, chosen.how, chosen.partial);
  if (!made.partial || v.layout.partial || !exceeds(p.e, v, made, bytes) || !may_scatter_result(p, n.output(), implicit)) return {};
  const move_list way = plan_reshard(v, made, v.layout, p.e);
  sharding before = v.layout.without(made.partial);
  before.partial = made.partial;
  if (way.count != 1 || way.moves[0].kind != op::reduce_scatter || (v.layout.used() & ~made.used()) != made.partial) return {};
  return before.same_layout(made) ? einsum_loop{einsum_loop::result, made.partial, -1, v.layout} : einsum_loop{};
}

}}}  // namespace gshard::v0::detail
