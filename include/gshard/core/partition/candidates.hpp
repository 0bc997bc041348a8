// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The candidate strategies of a node: which factors each mesh axis may shard.

#include <gshard/core/ir/graph.hpp>
#include <gshard/core/partition/convolution.hpp>
#include <gshard/core/partition/layout_cache.hpp>
#include <gshard/core/partition/operands.hpp>
#include <gshard/core/partition/strategy.hpp>
#include <gshard/core/reshard/halo.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// Factors of partner axes. If no operand uses this axis, let it shard the factor that its partner axes in the wanted result already shard.
/// All of them then move in one exchange.
constexpr std::uint32_t joint_factors(const planning& p, const node& n, int axis) {
  std::uint32_t found = 0;
  for (int o = 0; o < n.outputs; ++o) {
    const sharding& wanted = p.g.at(n.output(o)).layout;
    const int d = wanted.dim_of(axis);
    for (int k = 0; d >= 0 && k < wanted[d].size(); ++k)
      for (int i = 0; i < n.inputs; ++i) {
        const int at = p.cache.first_layout(n.in[i]).dim_of(wanted[d][k]);
        const short_list& factors = n.rule.in[i];
        if (at >= 0 && !n.rule.is_blocked(factors[at])) found |= 1u << factors[at];
      }
  }
  return found;
}

/// Factors for an axis that shards only blocked dims (or taps) of an operand: other dims of that operand. An all-to-all to one of them
/// moves less than an all-gather. Empty if a form of the operand without the axis exists already.
constexpr std::uint32_t alternative_factors(const planning& p, const node& n, int axis) {
  std::uint32_t found = 0;
  if ((!n.rule.blocked && !tap_factors(n)) || n.outputs == 0) return found;
  for (int i = 0; i < n.inputs; ++i) {
    bool everywhere = true;
    for (std::int32_t v = p.cache.first(n.in[i]); v >= 0; v = p.cache.next(v))
      everywhere = everywhere && p.cache.at(v).layout.dim_of(axis) >= 0;
    if (!everywhere) continue;
    const short_list &in = n.rule.in[i], &out = n.rule.out[0];
    for (int d = 0; d < in.size(); ++d)
      if (!n.rule.is_blocked(in[d]) && out.contains(in[d])) found |= 1u << in[d];
  }
  return found;
}

/// The factors that a mesh axis may shard, a bit each: the factors that it shards in a form of an operand, or in the wanted sharding of a
/// result. If the axis shards no operand, joint or alternative factors are added.
constexpr std::uint32_t candidate_factors(const planning& p, const node& n, int axis) {
  std::uint32_t found = 0;
  const auto look = [&](const sharding& s, const short_list& factors) {
    const int d = s.dim_of(axis);
    if (d >= 0 && !n.rule.is_blocked(factors[d])) found |= 1u << factors[d];
  };
  const std::uint32_t taps = tap_factors(n);
  for (int i = 0; i < n.inputs; ++i)
    for (std::int32_t v = p.cache.first(n.in[i]); v >= 0; v = p.cache.next(v)) {
      look(p.cache.at(v).layout, n.rule.in[i]);
      if (taps) look(p.cache.at(v).layout, longer_factors(n, i, p.g.windows, p.e));
    }
  const bool unused = (found & ~taps) == 0;
  for (int o = 0; o < n.outputs; ++o) look(p.g.at(n.output(o)).layout, n.rule.out[o]);
  if (unused && (found & ~taps)) found |= joint_factors(p, n, axis);
  return found & ~taps ? found : found | alternative_factors(p, n, axis);
}

/// Fills axes_of_factor. Axes that shard one factor keep the order that an operand has, or, if `as_wanted`, a result. Returns true if the
/// two orders differ.
constexpr bool order_axes(const planning& p, strategy& how, const node& n, bool as_wanted) {
  how.axes_of_factor = {};
  bool joint = false;
  for (int a = 0; a < p.axes; ++a) {
    const int f = how.factor_of_axis[a];
    if (f < 0) continue;
    how.axes_of_factor[f].push_back(a);
    joint = joint || how.axes_of_factor[f].count > 1;
  }
  if (!joint) return false;
  bool differs = false;
  for (int f = 0; f < factor_axes::factors; ++f) {
    short_list& axes = how.axes_of_factor[f];
    if (axes.size() < 2) continue;
    short_list given, wanted;
    const auto look = [&](const sharding& s, const short_list& factors, short_list& found) {
      const int d = factors.find(f);
      if (d >= 0 && s[d].size() == axes.size() && s[d].mask() == axes.mask()) found = s[d];
    };
    for (int o = 0; o < n.outputs; ++o) look(p.g.at(n.output(o)).layout, n.rule.out[o], wanted);
    for (int i = 0; i < n.inputs; ++i) look(p.cache.first_layout(n.in[i]), longer_factors(n, i, p.g.windows, p.e), given);
    if (given.empty() || (as_wanted && !wanted.empty())) given = wanted.empty() ? axes : wanted;
    else differs = differs || (!wanted.empty() && wanted != given);
    axes = given;
  }
  return differs;
}

/// The candidate factors of each mesh axis.
struct axis_candidates {
  std::uint32_t of[max_axes]{};
  bool any = false;

  constexpr axis_candidates(const planning& p, const node& n, const partial_state& partial) {
    for (int a = 0; a < p.axes; ++a) {
      of[a] = (partial.axes >> a) & 1u ? 0u : candidate_factors(p, n, a);
      any = any || of[a] != 0;
    }
  }
};

/// Calls visit() for every strategy: each axis from `axis` on with each of its factors and with none. Stops when visit returns false.
template <class Visit>
constexpr bool for_each_strategy(const planning& p, const node& n, const axis_candidates& candidates, int axis, strategy& how,
                                 const Visit& visit) {
  if (axis == p.axes) {
    for (bool as_wanted = false;; as_wanted = true) {
      const bool differs = order_axes(p, how, n, as_wanted);
      do {
        if (!visit()) return false;
        const bool windowed = traits(n.kind).taps && n.inputs > 1;
        how.keeps_first_operand = windowed && !how.keeps_first_operand && may_keep_first_operand(p.cache, n, how);
      } while (how.keeps_first_operand);
      if (!differs) return true;
    }
  }
  std::uint32_t left = candidates.of[axis];
  for (int f = 0; left != 0; ++f, left >>= 1) {
    if (!(left & 1u)) continue;
    how.factor_of_axis[axis] = f;
    if (!for_each_strategy(p, n, candidates, axis + 1, how, visit)) return false;
  }
  how.factor_of_axis[axis] = -1;
  return for_each_strategy(p, n, candidates, axis + 1, how, visit);
}

/// Calls visit(order) for the device orders of the operands' forms and of the wanted results, except the mesh's own order.
template <class Visit>
constexpr void for_each_order(const planning& p, const node& n, const Visit& visit) {
  const auto look = [&](const sharding& s) {
    if (s.order) visit(s.order);
  };
  for (int i = 0; i < n.inputs; ++i)
    for (std::int32_t v = p.cache.first(n.in[i]); v >= 0; v = p.cache.next(v)) look(p.cache.at(v).layout);
  for (int o = 0; o < n.outputs; ++o) look(p.g.at(n.output(o)).layout);
}

}}}  // namespace gshard::v0::detail
