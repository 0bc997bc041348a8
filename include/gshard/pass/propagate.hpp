// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/list.hpp>
#include <gshard/ir/graph.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

namespace detail {

/// Node indices by value: who makes it and who reads it.
class neighbours {
  template <class Visit>
  static constexpr void each(const node& n, Visit visit) {
    for (int i = 0; i < n.inputs; ++i) visit(n.input(i));
    for (int o = 0; o < n.outputs; ++o) visit(n.output(o));
  }

 public:
  constexpr explicit neighbours(const graph& g) : begin_(g.values.size() + 1, 0) {
    for (const node& n : g.nodes) each(n, [&](std::int32_t v) { ++begin_[std::size_t(v) + 1]; });
    for (std::size_t v = 1; v < begin_.size(); ++v) begin_[v] += begin_[v - 1];
    nodes_ = list<std::int32_t>(std::size_t(begin_.back()));
    list<std::int32_t> next = begin_;
    for (std::size_t i = 0; i < g.nodes.size(); ++i)
      each(g.nodes[i], [&](std::int32_t v) { nodes_[std::size_t(next[std::size_t(v)]++)] = std::int32_t(i); });
  }
  template <class Visit>
  constexpr void of(std::int32_t v, Visit visit) const {
    for (std::int32_t i = begin_[std::size_t(v)]; i < begin_[std::size_t(v) + 1]; ++i) visit(nodes_[std::size_t(i)]);
  }

 private:
  list<std::int32_t> begin_, nodes_;
};

/// Every factor of a node takes the longest list of axes that one of its dims has; open dims that have less are refined.
class node_propagation {
 public:
  constexpr node_propagation(graph& g, const node& n) : g_(g), n_(n) {}

  template <class Changed>
  constexpr void run(Changed changed) {
    for (int i = 0; i < n_.inputs; ++i) collect(n_.input(i), n_.loops.in[std::size_t(i)]);
    for (int o = 0; o < n_.outputs; ++o) collect(n_.output(o), n_.loops.out[std::size_t(o)]);
    if (!any_) return;
    for (int i = 0; i < n_.inputs; ++i)
      if (refine(n_.input(i), n_.loops.in[std::size_t(i)])) changed(n_.input(i));
    for (int o = 0; o < n_.outputs; ++o)
      if (refine(n_.output(o), n_.loops.out[std::size_t(o)])) changed(n_.output(o));
  }

 private:
  graph& g_;
  const node& n_;
  short_list cuts_[short_list::largest + 1]{};
  bool any_ = false;

  constexpr void collect(std::int32_t v, const short_list& factors) {
    const sharding& s = g_.at(v).layout;
    for (int d = 0; d < factors.count; ++d) {
      const short_list& axes = s.axes[d];
      if (axes.count == 0 || n_.loops.is_blocked(factors[d])) continue;
      short_list& cut = cuts_[factors[d]];
      if (cut.count < axes.count) cut = axes;
      any_ = true;
    }
  }
  constexpr bool refine(std::int32_t v, const short_list& factors) {
    sharding& s = g_.at(v).layout;
    if (!s.open) return false;
    bool changed = false;
    for (int d = 0; d < factors.count; ++d) {
      const short_list& cut = cuts_[factors[d]];
      if (cut.count == 0) continue;
      short_list& axes = s.axes[d];
      if (!s.is_open(d) || cut.count <= axes.count || !axes.is_prefix_of(cut)) continue;
      const std::uint32_t added = cut.mask() & ~axes.mask();
      if (added & (s.used() | s.partial)) continue;
      axes = cut;
      changed = true;
    }
    return changed;
  }
};

}  // namespace detail

/// Spreads the annotated layouts to all tensors of a program, both ways, to a fixed point. A layout only gets more specific. The
/// queue is first-in first-out and starts at the annotated tensors, parameters first, so where two annotations meet, the one
/// that is fewer operations away wins, and a tensor keeps what it was given first.
constexpr void propagate(graph& g) {
  const detail::neighbours near(g);
  list<std::int32_t> queue;
  list<char> waiting(g.nodes.size(), 0);
  const auto enqueue = [&](std::int32_t n) {
    if (waiting[std::size_t(n)]) return;
    waiting[std::size_t(n)] = 1;
    queue.push_back(n);
  };
  const auto start = [&](std::int32_t v) {
    if (g.at(v).layout.used()) near.of(v, enqueue);
  };
  for (const parameter& p : g.parameters) start(p.value);
  for (const node& n : g.nodes)
    if (n.kind == op::annotate) start(n.output());
  for (const port& p : g.inputs) start(p.value);
  for (std::size_t at = 0; at < queue.size(); ++at) {
    const std::int32_t n = queue[at];
    waiting[std::size_t(n)] = 0;
    detail::node_propagation(g, g.nodes[std::size_t(n)]).run([&](std::int32_t v) { near.of(v, enqueue); });
  }
}

}}  // namespace gshard::v0
