// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Regroups elementwise sums: (x + a) + (y + b) becomes ((a + b) + x) + y if a and b are partial sums over the same axes. One collective
// then completes both. An addend may also be s * a, or a slice of a, if a was completed before.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/storage.hpp>
#include <gshard/core/partition/strategy.hpp>
#include <gshard/core/pass/positions.hpp>
#include <gshard/core/pass/reader_counts.hpp>
#include <gshard/core/reshard/cost.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// Regroups such sums in a graph that was partitioned.
class sum_regrouping {
 public:
  /// `partial`: by tensor, the axes over which it is computed as a partial sum. `needs_complete`: by tensor, whether a node needs its sum.
  /// `products`: products of partial sums may stay partial sums, as addends.
  constexpr sum_regrouping(graph& g, const extents& e, const list<std::uint8_t>& partial, const list<char>& needs_complete, bool products)
      : g_(g), e_(e), partial_(partial), needs_complete_(needs_complete), products_(products) {}

  /// By tensor: products that become partial sums in the next plan. Empty: none.
  list<char> stays_partial;

  /// Returns true if it changed the graph.
  constexpr bool run() {
    bool changed = false, any = false;
    for (const std::uint8_t axes : partial_) any = any || axes != 0;
    if (!any) return false;
    list<std::int32_t> sums;  // tensors, because nodes move
    for (const node& n : g_.nodes)
      if (adds(n)) sums.push_back(n.out[0]);
    for (std::size_t i = sums.size(); i-- > 0;) changed = regroup(g_.at(sums[i]).producer) || changed;
    return changed;
  }
  constexpr void undo() { replace_all(0, before_); }

 private:
  /// sign * tensor.
  struct addend {
    std::int32_t tensor = -1, reader = -1;  // reader: the node that adds it
    short_list dims;
    double sign = 1;
    std::uint8_t axes = 0;   // over which it is, or can be, a partial sum
    std::int64_t bytes = 0;  // that are completed if the sum is not regrouped
  };
  /// A sum whose inner sums have one reader each.
  struct sum_tree {
    list<std::int32_t> nodes;  // the outermost one first
    list<addend> addends;      // in the order of the program
  };

  graph& g_;
  const extents& e_;
  const list<std::uint8_t>& partial_;
  const list<char>& needs_complete_;
  const bool products_;
  list<node> before_;           // the nodes of the graph, before the first change
  list<std::int32_t> readers_;  // by tensor: the number of readers. Empty until it is needed
  list<char> is_inner_;         // by tensor: 1 for inner sums that were visited
  list<std::uint8_t> product_axes_;   // by tensor @see find_products
  list<std::int64_t> product_bytes_;  // by tensor: bytes of the partial sum that its node, or one before, completes
  list<std::int32_t> storage_;        // by tensor @see storage_roots. Empty until it is needed
  list<std::int32_t> segments_;       // by node: the number of nodes of loops before it

  constexpr node& at(std::int32_t i) { return g_.nodes.data()[i]; }
  constexpr std::uint8_t partial_of(std::int32_t tensor) const { return partial_.data()[tensor]; }

  /// True for x + y and x - y, element by element.
  static constexpr bool adds(const node& n) {
    if (n.inputs != 2 || traits(n.kind).linear != linearity::of_function || !n.attr.function->linear) return false;
    const int own = n.attr.function->own;
    return own == pointwise_add.own || own == pointwise_subtract.own;
  }
  constexpr bool has_one_reader(std::int32_t tensor) {
    if (readers_.empty()) readers_ = reader_counts(g_, nodes_that_run(g_));
    return readers_.data()[tensor] == 1;
  }
  /// The node of an addend that is a complete sum with one reader, in the same segment of the program; otherwise -1.
  constexpr std::int32_t inner_sum(std::int32_t root, const addend& a) {
    const node& n = at(root);
    const std::int32_t maker = g_.at(a.tensor).producer;
    if (maker < 0 || partial_of(a.tensor) != 0 || !a.dims.same(n.rule.out[0])) return -1;
    const node& m = at(maker);
    if (!adds(m) || !m.rule.out[0].same(n.rule.out[0]) || is_rounded(a.tensor) || !has_one_reader(a.tensor)) return -1;
    if (m.place.gradient != n.place.gradient) return -1;  // remat scopes are ignored, so that they do not change any bit
    return segments_.data()[maker] == segments_.data()[root] ? maker : -1;
  }
  constexpr sum_tree tree_of(std::int32_t root) {
    sum_tree all;
    list<addend> left;  // the next one last
    const auto open = [&](std::int32_t sum, double sign) {
      const node& n = at(sum);
      all.nodes.push_back(sum);
      for (int k = 2; k-- > 0;) left.push_back({n.in[k], sum, n.rule.in[k], sign * n.attr.function->coefficient[std::size_t(k)]});
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
        if (partial_of(a.tensor) == 0) a.axes = product_axes_.data()[a.tensor];
        else if (!needs_complete_.data()[a.tensor]) a.axes = partial_of(a.tensor);
        a.bytes = partial_of(a.tensor) == 0 ? product_bytes_.data()[a.tensor] : bytes(a.tensor);
        const std::int32_t maker = g_.at(a.tensor).producer;  // if made before a loop, it would be completed in every iteration
        if (is_rounded(a.tensor) || (maker < 0 ? 0 : segments_.data()[maker]) != segments_.data()[root]) a.axes = 0;
      }
      all.addends.push_back(a);
    }
    return all;
  }
  /// Finds, by complete tensor, the axes over which it would be partial if its node kept the partial sum of its operand. 0: none, or that
  /// sum has other readers.
  constexpr void find_products() {
    product_axes_ = list<std::uint8_t>(g_.values.size(), 0);
    product_bytes_ = list<std::int64_t>(g_.values.size(), 0);
    for (std::size_t i = 0; i < g_.nodes.size() && products_ && g_.while_loops == 0; ++i) {
      const node& n = at(std::int32_t(i));
      if (n.outputs != 1 || n.inputs < 1 || n.inputs > 2 || traits(n.kind).annotates || partial_of(n.out[0]) != 0) continue;
      const std::uint8_t first = axes_through(n, 0), second = n.inputs == 2 ? axes_through(n, 1) : std::uint8_t(0);
      if ((first != 0) == (second != 0) || !has_one_reader(n.out[0])) continue;
      const std::int32_t read = n.in[first != 0 ? 0 : 1];
      product_axes_.data()[n.out[0]] = std::uint8_t(first | second);
      product_bytes_.data()[n.out[0]] = partial_of(read) != 0 ? bytes(read) : product_bytes_.data()[read];
    }
  }
  constexpr std::uint8_t axes_through(const node& n, int k) {
    const std::int32_t v = n.in[k];
    const std::uint8_t axes = partial_of(v) != 0 ? partial_of(v) : product_axes_.data()[v];
    if (axes == 0 || (n.inputs == 1 ? !is_linear(n) && !may_pass_partial(n) : !is_linear_in(n, k))) return 0;
    return has_one_reader(v) && !is_rounded(v) ? axes : std::uint8_t(0);
  }
  /// True if devices send the tensor as bf16. Its sum is completed in bf16.
  constexpr bool is_rounded(std::int32_t tensor) const { return g_.values.data()[tensor].bf16_on_wire; }
  constexpr std::int64_t bytes(std::int32_t tensor) const {
    const value& v = g_.values.data()[tensor];
    return shard_elements(v.dims, sharding::replicated(v.rank()), e_) * size_of(v.type);
  }
  constexpr void keep_partial(std::int32_t tensor) {
    if (partial_of(tensor) != 0) return;
    if (stays_partial.empty()) stays_partial = list<char>(g_.values.size(), 0);
    while (partial_of(tensor) == 0) {
      stays_partial.data()[tensor] = 1;
      const node& n = at(g_.at(tensor).producer);
      tensor = n.in[axes_through(n, 0) != 0 ? 0 : 1];
    }
  }

  /// Regroups the tree of a sum that is not an inner sum: adds partial sums over the same axes first. Returns false if nothing changes.
  constexpr bool regroup(std::int32_t root) {
    const std::int32_t made = at(root).out[0];
    if (partial_of(made) != 0 || at(root).place.position < 0) return false;
    if (is_inner_.empty()) {
      is_inner_ = list<char>(g_.values.size(), 0);
      std::int32_t segment = 0;
      for (const node& n : g_.nodes) segments_.push_back(is_of_loop(n.kind) ? ++segment : segment);
      find_products();
    }
    if (is_inner_.data()[made]) return false;
    sum_tree tree = tree_of(root);
    for (const addend& a : tree.addends)
      if (is_overwritten(a, root)) return false;
    list<node> sums;
    list<addend> groups;
    addend total;
    const auto add = [&](const addend& a) { total = total.tensor < 0 ? a : sum_of(tree, sums, total, a); };
    list<std::int32_t> places;  // by sum of a group: the node after which it can run
    for (std::size_t i = 0; i < tree.addends.size(); ++i) {
      if (!pays(tree, i, bytes(made))) continue;
      addend group;
      std::int32_t last = -1;
      for (std::size_t k = i; k < tree.addends.size(); ++k) {
        addend& next = tree.addends[k];
        if (k > i && next.axes != tree.addends[i].axes) continue;
        keep_partial(next.tensor);
        const std::int32_t maker = g_.at(next.tensor).producer;
        last = maker > last ? maker : last;
        if (k == i) {
          group = next;
          continue;
        }
        group = sum_of(tree, sums, group, next);
        places.push_back(last);
        next = {};
      }
      groups.push_back(group);
      tree.addends[i] = {};
    }
    if (groups.empty()) return false;
    if (before_.empty()) before_ = g_.nodes;
    for (const addend& a : groups) add(a);
    for (const addend& a : tree.addends)
      if (a.tensor >= 0) add(a);
    replace(tree.nodes, sums, places);
    return true;
  }
  /// True if an addend shares storage with a parameter that is updated before the outermost sum.
  constexpr bool is_overwritten(const addend& a, std::int32_t root) {
    for (std::int32_t i = a.reader + 1; i < root; ++i) {
      const node& n = at(i);
      if (n.in_place == 0 || !updates_parameters(n)) continue;
      if (storage_.empty()) storage_ = storage_roots(g_.nodes, g_.values.size());
      for (int k = 0; k < n.in_place; ++k)
        if (storage_.data()[n.in[k]] == storage_.data()[a.tensor]) return true;
    }
    return false;
  }
  /// True if an addend is the first of several over its axes, and completing each of them takes at least the bytes of their sum.
  static constexpr bool pays(const sum_tree& tree, std::size_t first, std::int64_t bytes_of_sum) {
    const std::uint8_t axes = tree.addends[first].axes;
    if (axes == 0) return false;
    for (std::size_t i = 0; i < first; ++i)
      if (tree.addends[i].axes == axes) return false;
    std::int64_t apart = 0;
    int count = 0;
    for (std::size_t i = first; i < tree.addends.size(); ++i) {
      if (tree.addends[i].axes != axes) continue;
      apart = saturating_sum(apart, tree.addends[i].bytes);
      ++count;
    }
    return count > 1 && apart >= bytes_of_sum;
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
    return {n.out[0], -1, n.rule.out[0], first.sign};
  }
  /// Puts the nodes of a regrouped sum at the place of the old one, and the sums of groups right after the last node that they read. Their
  /// collectives can then start together with earlier ones.
  constexpr void replace(const list<std::int32_t>& old, list<node>& sums, const list<std::int32_t>& places) {
    const std::int32_t root = old[0];
    std::int32_t first = root;
    for (const std::int32_t i : old) first = i < first ? i : first;
    for (const std::int32_t i : places) first = i + 1 < first ? i + 1 : first;
    list<char> removed(std::size_t(root - first) + 1, 0);
    for (const std::int32_t i : old) removed[std::size_t(i - first)] = 1;
    list<node> all;
    const auto put_sums = [&](std::int32_t after) {
      for (std::size_t k = 0; k < places.size(); ++k)
        if (places[k] == after) {
          sums[k].place.position = after < 0 ? 0 : at(after).place.position;
          all.push_back(sums[k]);
        }
    };
    put_sums(first - 1);
    for (std::int32_t i = first; i <= root; ++i) {
      if (!removed[std::size_t(i - first)]) all.push_back(at(i));
      if (i < root) put_sums(i);
    }
    for (std::size_t k = places.size(); k < sums.size(); ++k) all.push_back(sums[k]);
    replace_all(first, all);
  }
  constexpr void replace_all(std::int32_t first, const list<node>& by) {
    for (const node& n : by) {
      at(first) = n;
      for (int o = 0; o < n.outputs; ++o) g_.at(n.out[o]).producer = first;
      ++first;
    }
  }
};

}}}  // namespace gshard::v0::detail
