// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/ir/graph.hpp>
#include <gshard/pass/shared_work.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// How the devices of a mesh share the work of a node: which factor every axis cuts. Chosen by what its operands cost to bring there and
/// its results to where they are wanted.
class work_sharing : protected shared_work {
 protected:
  using shared_work::cost;
  using shared_work::shared_work;

  /// The factors that `axis` cuts in some version of an operand or in the layout wanted for a result, a bit each.
  constexpr std::uint32_t candidates(const node& n, int axis) const {
    std::uint32_t found = 0;
    const auto look = [&](const sharding& s, const short_list& dims) {
      const int d = s.dim_of(axis);
      if (d >= 0 && !n.loops.is_blocked(dims[d])) found |= 1u << dims[d];
    };
    const std::uint32_t taps = taps_of(n);
    for (int i = 0; i < n.inputs; ++i)
      for (std::int32_t v = first_[std::size_t(n.in[i])]; v >= 0; v = next_[std::size_t(v)]) {
        look(version(v).layout, n.loops.in[i]);
        if (taps) look(version(v).layout, longer_factors(n, i, g_.windows, e_));
      }
    const bool idle = (found & ~taps) == 0;
    for (int o = 0; o < n.outputs; ++o) look(g_.at(n.output(o)).layout, n.loops.out[o]);
    if (idle && (found & ~taps)) found |= with_others(n, axis);
    return found & ~taps ? found : found | elsewhere(n, axis);
  }
  /// An axis that no operand has may first cut what those cut with which it shall cut a dim of the result: they then move together.
  constexpr std::uint32_t with_others(const node& n, int axis) const {
    std::uint32_t found = 0;
    for (int o = 0; o < n.outputs; ++o) {
      const sharding& wanted = g_.at(n.output(o)).layout;
      const int d = wanted.dim_of(axis);
      for (int k = 0; d >= 0 && k < wanted[d].size(); ++k)
        for (int i = 0; i < n.inputs; ++i) {
          const int at = version(first_[std::size_t(n.in[i])]).layout.dim_of(wanted[d][k]);
          const short_list& dims = n.loops.in[i];
          if (at >= 0 && !n.loops.is_blocked(dims[at])) found |= 1u << dims[at];
        }
    }
    return found;
  }
  /// An axis that cuts only dims that this node needs whole, or taps, may cut others meanwhile, which is less than gathering them, where
  /// that has not been done yet.
  constexpr std::uint32_t elsewhere(const node& n, int axis) const {
    std::uint32_t found = 0;
    if ((!n.loops.blocked && !taps_of(n)) || n.outputs == 0) return found;
    for (int i = 0; i < n.inputs; ++i) {
      bool everywhere = true;
      for (std::int32_t v = first_[std::size_t(n.in[i])]; v >= 0; v = next_[std::size_t(v)])
        everywhere = everywhere && version(v).layout.dim_of(axis) >= 0;
      if (!everywhere) continue;
      const short_list &in = n.loops.in[i], &out = n.loops.out[0];
      for (int d = 0; d < in.size(); ++d)
        if (!n.loops.is_blocked(in[d]) && out.contains(in[d])) found |= 1u << in[d];
    }
    return found;
  }

  /// Cuts every axis's factor. Axes of one factor keep the order that an operand has, or, if `as_wanted`, that a result shall have. Returns
  /// whether that makes a difference.
  constexpr bool cut(choice& c, const node& n, bool as_wanted) const {
    c.cuts = {};
    bool shared = false;
    for (int a = 0; a < axes_; ++a) {
      const int f = c.factor_of[a];
      if (f < 0) continue;
      c.cuts[f].push_back(a);
      shared = shared || c.cuts[f].count > 1;
    }
    if (!shared) return false;
    bool differs = false;
    for (int f = 0; f < factors; ++f) {
      short_list& axes = c.cuts[f];
      if (axes.size() < 2) continue;
      short_list given, wanted;
      const auto look = [&](const sharding& s, const short_list& dims, short_list& found) {
        const int d = dims.find(f);
        if (d >= 0 && s[d].size() == axes.size() && s[d].mask() == axes.mask()) found = s[d];
      };
      for (int o = 0; o < n.outputs; ++o) look(g_.at(n.output(o)).layout, n.loops.out[o], wanted);
      for (int i = 0; i < n.inputs; ++i) look(version(first_[std::size_t(n.in[i])]).layout, longer_factors(n, i, g_.windows, e_), given);
      if (given.empty() || (as_wanted && !wanted.empty())) given = wanted.empty() ? axes : wanted;
      else differs = differs || (!wanted.empty() && wanted != given);
      axes = given;
    }
    return differs;
  }

  /// Dims that nobody has decided on may lie as they are made: what was sorted stays where its lines could be whole.
  static constexpr void refine(sharding& wanted, std::uint8_t open, const sharding& made) {
    if (!open) return;
    std::uint32_t used = wanted.used();
    for (int d = 0; d < wanted.rank; ++d) {
      if (!((open >> d) & 1u) || made[d].count <= wanted[d].count || !wanted[d].is_prefix_of(made[d])) continue;
      if (made[d].mask() & used & ~wanted[d].mask()) continue;
      wanted[d] = made[d];
      used |= made[d].mask();
    }
  }

  /// More than any bytes: for ways that do not leave a sum pending that is wanted pending.
  static constexpr std::int64_t unwanted = std::int64_t(1) << 60;

  /// How a result that is made so is wanted.
  constexpr sharding wanted_layout(const node& n, int o, const sharding& made) const {
    sharding wanted = g_.at(n.output(o)).layout;
    const std::uint32_t pending_fits = stays_[std::size_t(n.output(o))] ? ~wanted.used() : wanted.partial;
    wanted.partial = std::uint8_t(pending_fits & made.partial);
    wanted.pending = made.pending;
    if (n.kind == op::sort) refine(wanted, wanted.open, made);
    return wanted;
  }

  /// Bytes to bring the operands to these cuts and the results to the layouts that propagation wants. Work that an axis repeats on
  /// all its devices instead of sharing it counts like sending its results, but bringing elements to other places costs next to nothing.
  constexpr std::int64_t cost(const node& n, const choice& c, const pending_parts& pending) const {
    std::int64_t total = 0;
    for (int i = 0; i < n.inputs; ++i) total += operand_cost(n, i, c, pending);
    bool repeats = c.by_elements && repeats_elements(n, c, pending);
    for (int a = 0; a < axes_; ++a) repeats = repeats || c.factor_of[a] < 0;
    for (int o = 0; o < n.outputs; ++o) {
      const value& v = g_.at(n.output(o));
      const sharding made = result_layout(n, o, c, pending);
      if (v.layout.partial & ~made.partial) total += unwanted;
      if (n.kind == op::reshape)
        if (const dim_list windows = windows_of_result(n, made); !windows.empty()) {
          value before = v, after = v;
          before.layout = after.layout = made;
          before.windows = windows;
          total += exchange_cost(before, after);
        }
      if (const sharding wanted = wanted_layout(n, o, made); !made.same_layout(wanted))
        total += 1 + reshard_cost(v, made, wanted);
      if (repeats && !only_moves(n.kind)) total += shard_elements(v.dims, made, e_) * size_of(v.type);
    }
    return total;
  }

  /// The factors that every axis may cut, and whether there are any.
  struct axis_options {
    std::uint32_t of[max_axes]{};
    bool any = false;
  };
  constexpr void find_options(const node& n, const pending_parts& pending, axis_options& options) const {
    for (int a = 0; a < axes_; ++a) {
      options.of[a] = (pending.axes >> a) & 1u ? 0u : candidates(n, a);
      options.any = options.any || options.of[a] != 0;
    }
  }
  /// Calls go_on() with every factor (and none) for axis a and those after it in c, until it says no.
  template <class F>
  constexpr bool for_each_choice(const node& n, const axis_options& options, int a, choice& c, const F& go_on) const {
    if (a == axes_) {
      for (bool as_wanted = false;; as_wanted = true) {
        const bool differs = cut(c, n, as_wanted);
        do {
          if (!go_on()) return false;
          c.by_elements = n.kind == op::convolution && !c.by_elements && may_share_elements(n, c);
        } while (c.by_elements);
        if (!differs) return true;
      }
    }
    std::uint32_t left = options.of[a];
    for (int f = 0; left != 0; ++f, left >>= 1) {
      if (!(left & 1u)) continue;
      c.factor_of[a] = f;
      if (!for_each_choice(n, options, a + 1, c, go_on)) return false;
    }
    c.factor_of[a] = -1;
    return for_each_choice(n, options, a + 1, c, go_on);
  }

  /// Starts, where moves that can go together start once, bytes that are moved, and these with what repeated work counts for.
  struct price {
    std::int64_t starts = 0, moved = 0, bytes = 0;

    constexpr bool is_less_than(const price& other) const {
      return starts <= other.starts && moved <= other.moved && bytes <= other.bytes && (starts < other.starts || bytes < other.bytes);
    }
  };
  constexpr price price_of(const node& n, const choice& c, const pending_parts& pending) const {
    start_set before, after;
    for (int i = 0; i < n.inputs; ++i) {
      const held_as h = operand_of(n, i, c, pending);
      std::int32_t from = -1;
      if (h.windows.empty()) {
        cost(n.input(i), h.layout, &from);
        before.add(plan_reshard(version(from), version(from).layout, h.layout, e_), version(from), version(from).layout.pending);
      } else if (const std::int64_t bytes = cost(n.input(i), h, from) - start_bytes; bytes >= 0 && from >= 0) {
        value goal = g_.at(n.input(i));
        goal.layout = h.layout;
        goal.windows = h.windows;
        before.add(start_key(op::all_to_all, axes_of_move(version(from), goal), goal, goal.layout.pending), bytes);
      }
    }
    for (int o = 0; o < n.outputs; ++o) {
      const value& v = g_.at(n.output(o));
      const sharding made = result_layout(n, o, c, pending);
      if (const sharding wanted = wanted_layout(n, o, made); !made.same_layout(wanted))
        after.add(plan_reshard(v, made, wanted, e_), v, made.pending);
    }
    return {std::int64_t(before.count + after.count), before.moved + after.moved,
            cost(n, c, pending) - (before.alone + after.alone) * start_bytes};
  }
  /// In place of the choice that is cheapest if every move goes alone, one that starts no more and costs no more bytes if they go
  /// together. Of known extents, outside of loops.
  constexpr void choose_together(const node& n, const pending_parts& pending, choice& best) const {
    if (!loops_.none_open() || !moves_.combines() || n.inputs + n.outputs < 3 || best.order) return;
    if (e_.known_axes != (1u << axes_) - 1u || !knows_dims(n)) return;
    choice c;
    price lowest = price_of(n, best, pending);
    if (lowest.starts == 0) return;
    axis_options options;
    find_options(n, pending, options);
    for_each_choice(n, options, 0, c, [&] {
      const price p = price_of(n, c, pending);
      if (p.is_less_than(lowest)) {
        lowest = p;
        best = c;
      }
      return true;
    });
  }
  constexpr bool knows_dims(const node& n) const {
    const auto knows = [&](const value& v) {
      for (int d = 0; d < v.rank(); ++d)
        if (!e_.knows_dim(v.dims[d])) return false;
      return true;
    };
    for (int i = 0; i < n.inputs; ++i)
      if (!knows(g_.at(n.input(i)))) return false;
    for (int o = 0; o < n.outputs; ++o)
      if (!knows(g_.at(n.output(o)))) return false;
    return true;
  }

  /// Whether what a node computes is about the blocks of its result's layout.
  constexpr bool lies_as_made(const node& n) const {
    if (n.kind == op::block_sum || n.kind == op::block_cross_entropy || (n.kind == op::cumsum && n.inputs > 1)) return true;
    if (n.kind == op::per_shard) return true;
    return n.kind == op::top_k && g_.dims[std::size_t(g_.at(n.output()).dims[n.attr.integer[0]])].what == dim::kind::blocks;
  }
  constexpr choice as_result(const node& n) const {
    choice c;
    const sharding& s = g_.at(n.output()).layout;
    for (int d = 0; d < s.rank; ++d) {
      const int f = n.loops.out[0][d];
      c.cuts.by_factor[f] = s[d];
      for (int i = 0; i < s[d].size(); ++i) c.factor_of[s[d][i]] = f;
    }
    if (n.kind != op::per_shard) return c;
    for (int i = 0; i < n.inputs; ++i)  // they share no factor with the result, nor with each other
      for (int d = 0; d < n.loops.in[i].size(); ++d) c.cuts.by_factor[n.loops.in[i][d]] = g_.at(n.input(i)).layout[d];
    return c;
  }

  /// The cheapest factor for every axis.
  constexpr choice choose(const node& n, const pending_parts& pending, std::int64_t& lowest) const {
    choice c, best;
    axis_options options;
    find_options(n, pending, options);
    if (!options.any) return best;
    const auto look = [&](std::uint8_t order) {
      c.order = order;
      for_each_choice(n, options, 0, c, [&] {
        const std::int64_t bytes = cost(n, c, pending);
        if (lowest < 0 || bytes < lowest) {
          lowest = bytes;
          best = c;
        }
        return lowest != 0;
      });
    };
    look(0);
    if (!g_.orders.empty() && only_moves(n.kind)) for_each_order(n, look);
    return best;
  }
  /// The orders of the devices, besides the mesh's, in which the operands lie or the results are wanted.
  template <class F>
  constexpr void for_each_order(const node& n, const F& f) const {
    const auto look = [&](const sharding& s) {
      if (s.order) f(s.order);
    };
    for (int i = 0; i < n.inputs; ++i)
      for (std::int32_t v = first_[std::size_t(n.in[i])]; v >= 0; v = next_[std::size_t(v)]) look(version(v).layout);
    for (int o = 0; o < n.outputs; ++o) look(g_.at(n.output(o)).layout);
  }
  /// The same, where sums that are pending on an operand of a product may also stay pending, over an axis on one of them: what is cheapest.
  constexpr choice choose(const node& n, pending_parts& pending) const {
    if (lies_as_made(n)) {
      if (n.kind == op::per_shard) pending = {.axes = g_.at(n.output()).layout.partial, .declared = true};
      return as_result(n);
    }
    std::int64_t lowest = -1;
    choice best = choose(n, pending, lowest);
    if (lowest != 0 && is_product(n.kind) && n.inputs == 2 && !pending.axes && n.in[0] != n.in[1]) keep_pending(n, pending, best, lowest);
    if (lowest != 0) choose_together(n, pending, best);
    return best;
  }
  constexpr void keep_pending(const node& n, pending_parts& pending, choice& best, std::int64_t lowest) const {
    const std::uint8_t a = pending_sums(n.in[0]), b = pending_sums(n.in[1]);
    if (!a && !b) return;
    if (lowest < 0) lowest = cost(n, best, pending);
    const std::uint8_t ways[][2] = {{a, 0}, {0, b}, {std::uint8_t(a & ~b), b}, {a, std::uint8_t(b & ~a)}};
    for (const auto& [first, second] : ways) {
      const pending_parts kept{.axes = std::uint8_t(first | second), .each = true, .second = second};
      std::int64_t other = -1;
      const choice c = choose(n, kept, other);
      if (other < 0) other = cost(n, c, kept);
      if (other >= lowest) continue;
      lowest = other;
      best = c;
      pending = kept;
    }
  }
};

}}}  // namespace gshard::v0::detail
