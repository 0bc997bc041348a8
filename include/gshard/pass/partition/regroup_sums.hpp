// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Regroups elementwise sums: (x + a) + b becomes x + (a + b) if a and b are partial sums over the same axes. So one collective completes
// both. Their sum is rounded in another order.

#include <gshard/base/list.hpp>
#include <gshard/ir/graph.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// Looks for such sums in a graph that was partitioned. It moves each partial sum towards the other one, step by step.
class sum_regrouping {
 public:
  /// `partial`: by tensor, the axes over which it is computed as a partial sum. `needs_complete`: by tensor, whether a node needs its sum.
  constexpr sum_regrouping(graph& g, const list<std::uint8_t>& partial, const list<char>& needs_complete)
      : g_(g), partial_(partial), needs_complete_(needs_complete) {}

  /// Returns true if it changed the graph.
  constexpr bool run() {
    bool changed = false;
    for (std::size_t i = 0; i < g_.nodes.size(); ++i)
      for (auto at = std::int32_t(i); at >= 0;) {
        const std::int32_t next = regroup(at);
        changed = changed || next >= 0;
        at = next;
      }
    return changed;
  }

 private:
  graph& g_;
  const list<std::uint8_t>& partial_;
  const list<char>& needs_complete_;
  list<std::int32_t> uses_;  // by tensor: how many nodes and results read it. Empty until it is needed

  constexpr node& at(std::int32_t i) { return g_.nodes.data()[i]; }
  constexpr std::uint8_t partial_of(std::int32_t tensor) const { return partial_.data()[tensor]; }

  /// True for x + y and x - y, element by element.
  static constexpr bool adds(const node& n) {
    if (traits(n.kind).linear != linearity::of_function || n.inputs != 2 || !n.attr.function->linear) return false;
    const int own = n.attr.function->own;
    return own == pointwise_add.own || own == pointwise_subtract.own;
  }
  static constexpr bool is_whole(const node& n, int operand) { return n.rule.in[operand].same(n.rule.out[0]); }
  constexpr bool has_one_reader(std::int32_t tensor) {
    if (uses_.empty()) {
      uses_ = list<std::int32_t>(g_.values.size(), 0);
      for (const node& n : g_.nodes)
        for (int k = 0; k < n.inputs; ++k) ++uses_.data()[n.in[k]];
      for (const port& p : g_.outputs) ++uses_.data()[p.value];
      for (const parameter& p : g_.parameters)
        if (p.updated >= 0) ++uses_.data()[p.updated];
    }
    return uses_.data()[tensor] == 1;
  }
  /// The node that makes operand k of a sum, if it is a sum that nobody else reads, in the same stretch of the program; else -1.
  constexpr std::int32_t inner_sum(std::int32_t sum, int k) {
    const node& n = at(sum);
    const std::int32_t maker = g_.at(n.in[k]).producer;
    if (maker < 0 || !is_whole(n, k) || !adds(at(maker)) || !has_one_reader(n.in[k])) return -1;
    if (at(maker).place.gradient != n.place.gradient) return -1;  // remat scopes make no difference: with them, bits are the same
    for (std::int32_t i = maker; i < sum; ++i)
      if (is_of_loop(at(i).kind)) return -1;
    return maker;
  }
  /// The operand of a sum that is partial over these axes, or leads to such an addend; else -1.
  constexpr int operand_with(std::int32_t sum, std::uint8_t axes) {
    for (int k = 0; k < 2; ++k) {
      const std::int32_t v = at(sum).in[k];
      if (partial_of(v) == axes && is_whole(at(sum), k) && !needs_complete_[std::size_t(v)]) return k;
    }
    for (int k = 0; k < 2; ++k) {
      const std::int32_t inner = partial_of(at(sum).in[k]) == 0 ? inner_sum(sum, k) : -1;
      if (inner >= 0 && operand_with(inner, axes) >= 0) return k;
    }
    return -1;
  }
  /// Makes t + b, where t = x + a, to x + (a + b). b is a partial sum, and a is one or contains one as an addend.
  /// Returns the node of a + b, or -1 if nothing was regrouped.
  constexpr std::int32_t regroup(std::int32_t i) {
    if (!adds(at(i))) return -1;
    for (int k = 0; k < 2; ++k) {
      const std::uint8_t axes = partial_of(at(i).in[k]);
      if (axes == 0 || !is_whole(at(i), k) || partial_of(at(i).in[1 - k]) != 0 || needs_complete_.data()[at(i).in[k]]) continue;
      const std::int32_t inner = inner_sum(i, 1 - k);
      const int a = inner >= 0 ? operand_with(inner, axes) : -1;
      if (a >= 0) return rotate(i, k, inner, a);
    }
    return -1;
  }
  /// outer = t + b, t = x + a  ->  t = a + b, outer = x + t. Signs go along. Returns the node of t, right before the outer one.
  constexpr std::int32_t rotate(std::int32_t outer, int b_at, std::int32_t inner, int a_at) {
    node sum = at(outer), part = at(inner);
    const auto sign = [](const node& n, int k) { return n.attr.function->coefficient[std::size_t(k)]; };
    const double of_t = sign(sum, 1 - b_at);
    const double of_a = of_t * sign(part, a_at), of_x = of_t * sign(part, 1 - a_at), of_b = sign(sum, b_at);
    const double of_part = of_a < 0 && of_b < 0 ? -1 : 1;
    const addend a{part.in[a_at], part.rule.in[a_at], of_a * of_part}, b{sum.in[b_at], sum.rule.in[b_at], of_b * of_part};
    const addend x{part.in[1 - a_at], part.rule.in[1 - a_at], of_x}, t{part.out[0], part.rule.out[0], of_part};
    set(part, a, b);
    set(sum, x, t);
    part.place = sum.place;
    for (std::int32_t i = inner; i + 1 < outer; ++i) at(i) = at(i + 1);
    at(outer - 1) = part;
    at(outer) = sum;
    for (std::int32_t i = inner; i <= outer; ++i)
      for (int o = 0; o < at(i).outputs; ++o) g_.at(at(i).out[o]).producer = i;
    return outer - 1;
  }
  struct addend {
    std::int32_t tensor;
    short_list dims;
    double sign;
  };
  /// Makes a node the sum of two addends, of which one has a positive sign.
  static constexpr void set(node& n, const addend& u, const addend& v) {
    const bool swaps = u.sign < 0;
    const addend &first = swaps ? v : u, &second = swaps ? u : v;
    n.in[0] = first.tensor;
    n.in[1] = second.tensor;
    n.rule.in[0] = first.dims;
    n.rule.in[1] = second.dims;
    n.attr.function = second.sign < 0 ? &pointwise_subtract : &pointwise_add;
  }
};

}}}  // namespace gshard::v0::detail
