// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The einsum planner, used for all operations: chooses the cheapest strategy of a node (arXiv 2006.16668 section 3.3.2).
//
// The cost of a strategy is that of resharding operands to it, and results to the shardings that propagation wants. An axis may shard
//   a batch factor (in all operands and the result)  nothing moves
//   a free factor (in one operand and the result)    the other operand is replicated over the axis
//   a contracted factor (in the operands alone)      the result is a partial sum: all_reduce, or reduce_scatter where it is sharded.

#include <gshard/core/ir/graph.hpp>
#include <gshard/core/partition/candidates.hpp>
#include <gshard/core/partition/layout_cache.hpp>
#include <gshard/core/partition/operands.hpp>
#include <gshard/core/partition/strategy.hpp>
#include <gshard/core/reshard/collective_combiner.hpp>
#include <gshard/core/reshard/cost.hpp>
#include <gshard/core/reshard/reshard.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// Refines the open dims of a wanted sharding to the sharding in which the result is made, so that a sorted tensor keeps its sharding.
constexpr void refine_open_dims(sharding& wanted, std::uint8_t open, const sharding& made) {
  if (!open) return;
  std::uint32_t used = wanted.used();
  for (int d = 0; d < wanted.rank; ++d) {
    if (!((open >> d) & 1u) || made[d].count <= wanted[d].count || !wanted[d].is_prefix_of(made[d])) continue;
    if (made[d].mask() & used & ~wanted[d].mask()) continue;
    wanted[d] = made[d];
    used |= made[d].mask();
  }
}

/// The wanted sharding of result o, given the sharding in which it is made. Partial sums stay if they are wanted or allowed.
constexpr sharding wanted_sharding(const planning& p, const node& n, int o, const sharding& made) {
  sharding wanted = p.g.at(n.output(o)).layout;
  const std::uint32_t may_be_partial = p.may_stay_partial[std::size_t(n.output(o))] ? ~wanted.used() : wanted.partial;
  wanted.partial = std::uint8_t(may_be_partial & made.partial);
  wanted.pending = made.pending;
  if (traits(n.kind).keeps_sharding) refine_open_dims(wanted, wanted.open, made);
  return wanted;
}

/// The cost of a strategy whose result is complete where a partial sum is wanted: more than any bytes.
inline constexpr std::int64_t excluded = most_price * 32;

/// The cost of a strategy in bytes: reshards of operands to their forms, and of results to the wanted shardings. Work that is replicated
/// over an axis costs as much as sending its results, unless the operation only moves data.
constexpr std::int64_t strategy_cost(const planning& p, const node& n, const strategy& how, const partial_state& partial) {
  std::int64_t total = 0;
  for (int i = 0; i < n.inputs; ++i) total += operand_cost(p, n, i, how, partial);
  bool repeats = how.keeps_first_operand && reads_most_of_second(p.g, p.e, n, operand_form(p, n, 1, how, partial));
  for (int a = 0; a < p.axes; ++a) repeats = repeats || how.factor_of_axis[a] < 0;
  for (int o = 0; o < n.outputs; ++o) {
    const value& v = p.g.at(n.output(o));
    const sharding made = result_sharding(n, o, how, partial);
    if (v.layout.partial & ~made.partial) total += excluded;
    if (n.attr.change == reshape_kind::merge)
      if (const dim_list windows = windows_of_result(p, n, made); !windows.empty()) {
        value before = v, after = v;
        before.layout = after.layout = made;
        before.windows = windows;
        total += p.cache.exchange_cost(before, after);
      }
    if (const sharding wanted = wanted_sharding(p, n, o, made); !made.same_layout(wanted))
      total += 1 + p.cache.reshard_cost(n.output(o), v, made, wanted);
    if (repeats && !traits(n.kind).only_moves) total += shard_elements(v.dims, made, p.e) * size_of(v.type);
  }
  return total;
}

/// The cost of a strategy whose moves may be combined: `starts` collectives, `moved` bytes, and `bytes` including replicated work.
struct combined_cost {
  std::int64_t starts = 0, moved = 0, bytes = 0;

  constexpr bool is_less_than(const combined_cost& other) const {
    return starts <= other.starts && moved <= other.moved && bytes <= other.bytes && (starts < other.starts || bytes < other.bytes);
  }
};
/// Adds the moves that bring a tensor into a sharding. If its node runs again, these are the moves of its operands. Forms in `counted` are
/// free.
constexpr void add_moves(start_set& all, const planning& p, std::int32_t tensor, const sharding& layout, priced_forms& counted) {
  if (counted.has(tensor, layout)) return;
  if (!counted.full()) counted.add(tensor, layout);
  if (p.cache.is_repeated(tensor, layout)) {
    const node& n = p.g.nodes[std::size_t(p.g.at(tensor).producer)];
    const repetition r = repeat_in(n, layout);
    for (int i = 0; i < n.inputs; ++i) add_moves(all, p, n.input(i), r.in[i], counted);
    return;
  }
  std::int32_t from = -1;
  p.cache.cost_of_move(tensor, layout, &from);
  const value& source = p.cache.at(from);
  all.add(p.cache.moves_between(tensor, source, source.layout, layout), source, source.layout.pending);
}
constexpr combined_cost cost_if_combined(const planning& p, const node& n, const strategy& how, const partial_state& partial) {
  start_set before, after;
  for (int i = 0; i < n.inputs; ++i) {
    const sharded_form form = operand_form(p, n, i, how, partial);
    std::int32_t from = -1;
    if (form.windows.empty()) {
      priced_forms counted;
      add_moves(before, p, n.input(i), form.layout, counted);
    } else if (const std::int64_t bytes = p.cache.cost(n.input(i), form, from) - p.e.start_bytes; bytes >= 0 && from >= 0) {
      value goal = p.g.at(n.input(i));
      goal.layout = form.layout;
      goal.windows = form.windows;
      before.add(start_key(op::all_to_all, axes_of_move(p.cache.at(from), goal), goal, goal.layout.pending), bytes);
    }
  }
  for (int o = 0; o < n.outputs; ++o) {
    const value& v = p.g.at(n.output(o));
    const sharding made = result_sharding(n, o, how, partial);
    if (const sharding wanted = wanted_sharding(p, n, o, made); !made.same_layout(wanted))
      after.add(p.cache.moves_between(n.output(o), v, made, wanted), v, made.pending);
  }
  return {std::int64_t(before.count + after.count), before.moved + after.moved,
          strategy_cost(p, n, how, partial) - (before.alone + after.alone) * p.e.start_bytes};
}

/// True if the extents of all tensors of a node and of the mesh are known.
constexpr bool knows_extents(const planning& p, const node& n) {
  const auto knows = [&](const value& v) {
    for (int d = 0; d < v.rank(); ++d)
      if (!p.e.knows_dim(v.dims[d])) return false;
    return true;
  };
  if (p.e.known_axes != (1u << p.axes) - 1u) return false;
  for (int i = 0; i < n.inputs; ++i)
    if (!knows(p.g.at(n.input(i)))) return false;
  for (int o = 0; o < n.outputs; ++o)
    if (!knows(p.g.at(n.output(o)))) return false;
  return true;
}

/// A strategy that is no worse than `best` in any respect and better in one, once moves are combined; otherwise `best`.
constexpr strategy choose_combined(const planning& p, const node& n, const partial_state& partial, strategy best) {
  if (n.inputs + n.outputs < 3 || best.order || !knows_extents(p, n)) return best;
  strategy how(p.axes);
  combined_cost lowest = cost_if_combined(p, n, best, partial);
  if (lowest.starts == 0) return best;
  for_each_strategy(p, n, axis_candidates(p, n, partial), 0, how, [&] {
    const combined_cost c = cost_if_combined(p, n, how, partial);
    if (c.is_less_than(lowest)) {
      lowest = c;
      best = how;
    }
    return true;
  });
  return best;
}

/// True if the node must be partitioned like its result, because it computes properties of the result's shards.
constexpr bool follows_result(const node& n) { return traits(n.kind).follows_result || n.attr.of_blocks; }
constexpr strategy strategy_of_result(const planning& p, const node& n) {
  strategy how(p.axes);
  const sharding& s = p.g.at(n.output()).layout;
  for (int d = 0; d < s.rank; ++d) {
    const int f = n.rule.out[0][d];
    how.axes_of_factor[f] = s[d];
    for (int i = 0; i < s[d].size(); ++i) how.factor_of_axis[s[d][i]] = f;
  }
  if (!traits(n.kind).declares_result) return how;
  for (int i = 0; i < n.inputs; ++i)  // its operands share no factors
    for (int d = 0; d < n.rule.in[i].size(); ++d) how.axes_of_factor[n.rule.in[i][d]] = p.g.at(n.input(i)).layout[d];
  return how;
}

/// The cheapest strategy for given partial sums. `lowest` receives its cost, or stays negative if there is only one strategy.
constexpr strategy cheapest_strategy(const planning& p, const node& n, const partial_state& partial, std::int64_t& lowest) {
  strategy how(p.axes), best(p.axes);
  const axis_candidates candidates(p, n, partial);
  if (!candidates.any) return best;
  const auto look = [&](std::uint8_t order) {
    how.order = order;
    for_each_strategy(p, n, candidates, 0, how, [&] {
      const std::int64_t bytes = strategy_cost(p, n, how, partial);
      if (lowest < 0 || bytes < lowest) {
        lowest = bytes;
        best = how;
      }
      return lowest != 0;
    });
  };
  look(0);
  if (!partial.axes && !p.g.orders.empty() && traits(n.kind).only_moves) for_each_order(p, n, look);  // partial sums have no device order
  return best;
}

/// The same for a product. Each operand in which it is linear may stay partial over its own axes. @see may_pass_partial
constexpr partitioning keep_partial_operands(const planning& p, const node& n, partitioning best, std::int64_t lowest) {
  const auto axes_of = [&](int i) { return is_linear_in(n, i) ? partial_sum_axes(p, n.in[i]) : std::uint8_t(0); };
  const std::uint8_t a = axes_of(0), b = axes_of(1);
  if (!a && !b) return best;
  if (lowest < 0) lowest = strategy_cost(p, n, best.how, best.partial);
  const auto keep = [&](std::uint8_t first, std::uint8_t second) {
    const partial_state kept{.axes = std::uint8_t(first | second), .per_operand = true, .second = second};
    std::int64_t bytes = -1;
    const strategy how = cheapest_strategy(p, n, kept, bytes);
    if (bytes < 0) bytes = strategy_cost(p, n, how, kept);
    if (bytes > lowest || (bytes == lowest && !p.may_stay_partial[std::size_t(n.output())])) return;
    lowest = bytes;
    best = {how, kept};
  };
  if (a) keep(a, 0);
  if (b) keep(0, b);
  if (a && b && a != b) keep(std::uint8_t(a & ~b), b);
  if ((a & b) && a != b) keep(a, std::uint8_t(b & ~a));
  return best;
}

/// The strategy of a node, and the partial sums that it keeps. `combines`: moves of one node may start together.
constexpr partitioning choose_strategy(const planning& p, const node& n, bool combines) {
  partitioning chosen{strategy(p.axes), partial_through(p, n)};
  if (follows_result(n)) {
    if (traits(n.kind).declares_result) chosen.partial = {.axes = p.g.at(n.output()).layout.partial, .declared = true};
    chosen.how = strategy_of_result(p, n);
    return chosen;
  }
  std::int64_t lowest = -1;
  chosen.how = cheapest_strategy(p, n, chosen.partial, lowest);
  if (traits(n.kind).counts_devices) chosen.partial = {.axes = std::uint8_t((1u << p.axes) - 1u), .declared = true};
  if (lowest == 0 || chosen.partial.declared) return chosen;
  if (may_pass_partial(n) && !chosen.partial.axes && (n.inputs == 1 || n.in[0] != n.in[1]))
    chosen = keep_partial_operands(p, n, chosen, lowest);
  if (combines) chosen.how = choose_combined(p, n, chosen.partial, chosen.how);
  return chosen;
}

}}}  // namespace gshard::v0::detail
