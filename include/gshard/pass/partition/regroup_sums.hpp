// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Regroups elementwise sums: (x + a) + (y + b) becomes ((a + b) + x) + y if a and b are partial sums over the same axes. So one collective
// completes both. An addend may also be a product of a partial sum, such as s * a, that was computed from the complete one.

#include <gshard/base/list.hpp>
#include <gshard/ir/graph.hpp>
#include <gshard/pass/cost/cost.hpp>
#include <gshard/pass/partition/strategy.hpp>
#include <gshard/pass/reader_counts.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// Looks for such sums in a graph that was partitioned.
class sum_regrouping {
 public:
  /// `partial`: by tensor, the axes over which it is computed as a partial sum. `needs_complete`: by tensor, whether a node needs its sum.
  constexpr sum_regrouping(graph& g, const extents& e, const list<std::uint8_t>& partial, const list<char>& needs_complete)
      : g_(g), e_(e), partial_(partial), needs_complete_(needs_complete) {}

  /// By tensor: products that shall be partial sums in the next plan. Empty: none.
  list<char> stays_partial;

  /// Returns true if it changed the graph, or products.
  constexpr bool run() {
    bool changed = false;
    for (std::size_t i = g_.nodes.size(); i-- > 0;)
      if (adds(g_.nodes.data()[i])) changed = regroup(std::int32_t(i)) || changed;
    return changed;
  }

 private:
  /// sign * tensor.
  struct addend {
    std::int32_t tensor = -1;
    short_list dims;
    double sign = 1;
    std::uint8_t axes = 0;  // over which it is, or can be, a partial sum
  };
  /// A sum of which every inner sum has one reader.
  struct sum_tree {
    list<std::int32_t> nodes;  // the outermost one first
    list<addend> addends;      // in the order of the program
  };

  graph& g_;
  const extents& e_;
  const list<std::uint8_t>& partial_;
  const list<char>& needs_complete_;
  list<std::int32_t> readers_;  // by tensor: how many there are. Empty until it is needed
  list<char> is_inner_;         // by tensor: an inner sum that was looked at

  constexpr node& at(std::int32_t i) { return g_.nodes.data()[i]; }
  constexpr std::uint8_t partial_of(std::int32_t tensor) const { return partial_.data()[tensor]; }

  /// True for x + y and x - y, element by element.
  static constexpr bool adds(const node& n) {
    if (n.inputs != 2 || traits(n.kind).linear != linearity::of_function || !n.attr.function->linear) return false;
    const int own = n.attr.function->own;
    return own == pointwise_add.own || own == pointwise_subtract.own;
  }
  constexpr bool has_one_reader(std::int32_t tensor) {
    if (readers_.empty()) readers_ = reader_counts(g_);
    return readers_.data()[tensor] == 1;
  }
  /// The node of an addend that is itself a complete sum, read by nobody else, in the same segment of the program; else -1.
  constexpr std::int32_t inner_sum(std::int32_t root, const addend& a) {
    const node& n = at(root);
    const std::int32_t maker = g_.at(a.tensor).producer;
    if (maker < 0 || partial_of(a.tensor) != 0 || !a.dims.same(n.rule.out[0])) return -1;
    const node& m = at(maker);
    if (!adds(m) || !m.rule.out[0].same(n.rule.out[0]) || !has_one_reader(a.tensor)) return -1;
    if (m.place.gradient != n.place.gradient) return -1;  // remat scopes make no difference: with them, bits are the same
    for (std::int32_t i = maker; i < root && g_.while_loops != 0; ++i)
      if (is_of_loop(at(i).kind)) return -1;
    return maker;
  }
  constexpr sum_tree tree_of(std::int32_t root) {
    sum_tree all;
    list<addend> left;  // the next one last
    const auto open = [&](std::int32_t sum, double sign) {
      const node& n = at(sum);
      all.nodes.push_back(sum);
      for (int k = 2; k-- > 0;) left.push_back({n.in[k], n.rule.in[k], sign * n.attr.function->coefficient[std::size_t(k)]});
    };
    open(root, 1);
    while (!left.empty()) {
      addend a = left.back();
      left.pop_back();
      if (const std::int32_t inner = inner_sum(root, a); inner >= 0) {
        is_inner_.data()[a.tensor] = 1;
        open(inner, a.sign);
        continue;
      }
      if (a.dims.same(at(root).rule.out[0])) {
        if (partial_of(a.tensor) == 0) a.axes = axes_of_product(a.tensor);
        else if (!needs_complete_.data()[a.tensor]) a.axes = partial_of(a.tensor);
      }
      all.addends.push_back(a);
    }
    return all;
  }
  /// The axes over which a complete product would be a partial sum, if its operand stayed partial. 0: over none, or that would cost more.
  constexpr std::uint8_t axes_of_product(std::int32_t tensor) {
    const std::int32_t maker = g_.at(tensor).producer;
    if (maker < 0 || g_.while_loops != 0 || !has_one_reader(tensor)) return 0;
    const node& n = at(maker);
    if (n.outputs != 1 || traits(n.kind).annotates) return 0;
    if (n.inputs == 1) return is_linear(n) ? axes_of_operand(n, 0) : std::uint8_t(0);
    if (!is_product(n) || n.in[0] == n.in[1]) return 0;
    const std::uint8_t first = axes_of_operand(n, 0), second = axes_of_operand(n, 1);
    if (first != 0 && second != 0) return 0;
    return first != 0 ? first : second;
  }
  constexpr std::uint8_t axes_of_operand(const node& n, int k) {
    const std::int32_t v = n.in[k];
    if (n.inputs == 2 && !is_linear_in(g_, n, k)) return 0;
    if (!has_one_reader(v) || bytes(v) < bytes(n.out[0])) return 0;
    return partial_of(v) != 0 ? partial_of(v) : axes_of_product(v);
  }
  constexpr std::int64_t bytes(std::int32_t tensor) const {
    const value& v = g_.values.data()[tensor];
    return shard_elements(v.dims, sharding::replicated(v.rank()), e_) * size_of(v.type);
  }
  constexpr void keep_partial(std::int32_t tensor) {
    if (partial_of(tensor) != 0) return;
    if (stays_partial.empty()) stays_partial = list<char>(g_.values.size(), 0);
    stays_partial.data()[tensor] = 1;
    const node& n = at(g_.at(tensor).producer);
    for (int k = 0; k < n.inputs; ++k)
      if (axes_of_operand(n, k) != 0) keep_partial(n.in[k]);
  }

  /// Adds partial sums over the same axes first, in the tree of a sum that is no inner sum.
  constexpr bool regroup(std::int32_t root) {
    const std::int32_t made = at(root).out[0];
    if (partial_of(made) != 0 || at(root).place.position < 0) return false;
    if (is_inner_.empty()) is_inner_ = list<char>(g_.values.size(), 0);
    if (is_inner_.data()[made]) return false;
    sum_tree tree = tree_of(root);
    list<node> sums;
    addend total;
    const auto add = [&](const addend& a) { total = total.tensor < 0 ? a : sum_of(tree, sums, total, a); };
    for (std::size_t i = 0; i < tree.addends.size(); ++i) {
      addend group;
      for (std::size_t k = i + 1; k < tree.addends.size() && tree.addends[i].axes != 0; ++k) {
        addend& next = tree.addends[k];
        if (next.axes != tree.addends[i].axes) continue;
        if (group.tensor < 0) {
          group = tree.addends[i];
          keep_partial(group.tensor);
        }
        keep_partial(next.tensor);
        group = sum_of(tree, sums, group, next);
        next = {};
      }
      if (group.tensor < 0) continue;
      add(group);
      tree.addends[i] = {};
    }
    if (total.tensor < 0) return false;
    for (const addend& a : tree.addends)
      if (a.tensor >= 0) add(a);
    replace(tree.nodes, sums);
    return true;
  }
  /// The next node of a regrouped sum: u + v, or u - v, v - u or -(u + v).
  constexpr addend sum_of(const sum_tree& tree, list<node>& sums, const addend& u, const addend& v) {
    node n = at(tree.nodes[tree.nodes.size() - 1 - sums.size()]);
    n.place = at(tree.nodes[0]).place;
    const bool swaps = u.sign < 0;
    const addend &first = swaps ? v : u, &second = swaps ? u : v;
    n.in[0] = first.tensor;
    n.in[1] = second.tensor;
    n.rule.in[0] = first.dims;
    n.rule.in[1] = second.dims;
    n.attr.function = first.sign != second.sign ? &pointwise_subtract : &pointwise_add;
    sums.push_back(n);
    return {n.out[0], n.rule.out[0], first.sign};
  }
  /// Puts the nodes of a regrouped sum right before the readers of the old one.
  constexpr void replace(const list<std::int32_t>& old, const list<node>& sums) {
    const std::int32_t root = old[0];
    std::int32_t first = root;
    for (const std::int32_t i : old) first = i < first ? i : first;
    list<char> removed(std::size_t(root - first) + 1, 0);
    for (const std::int32_t i : old) removed[std::size_t(i - first)] = 1;
    const auto put = [this](std::int32_t i, const node& n) {
      at(i) = n;
      for (int o = 0; o < n.outputs; ++o) g_.at(n.out[o]).producer = i;
    };
    std::int32_t to = first;
    for (std::int32_t i = first; i <= root; ++i)
      if (!removed[std::size_t(i - first)]) put(to++, at(i));
    for (const node& n : sums) put(to++, n);
  }
};

}}}  // namespace gshard::v0::detail
