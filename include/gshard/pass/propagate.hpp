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
 public:
  constexpr explicit neighbours(const graph& g) : begin_(g.values.size() + 1, 0) {
    // Pointers: a subscript of a list is a call, which is most of what the evaluator would do here.
    const std::size_t values = g.values.size(), count = g.nodes.size();
    const node* const nodes = g.nodes.data();
    std::int32_t* const begin = begin_.data();
    for (std::size_t i = 0; i < count; ++i) {
      const node& n = nodes[i];
      for (int k = 0; k < n.inputs; ++k) ++begin[n.in[k] + 1];
      for (int o = 0; o < n.outputs; ++o) ++begin[n.out[o] + 1];
    }
    for (std::size_t v = 1; v <= values; ++v) begin[v] += begin[v - 1];
    nodes_ = list<std::int32_t>(std::size_t(begin[values]));
    list<std::int32_t> next_free = begin_;
    std::int32_t *const next = next_free.data(), *const near = nodes_.data();
    for (std::size_t i = 0; i < count; ++i) {
      const node& n = nodes[i];
      for (int k = 0; k < n.inputs; ++k) near[next[n.in[k]]++] = std::int32_t(i);
      for (int o = 0; o < n.outputs; ++o) near[next[n.out[o]]++] = std::int32_t(i);
    }
  }
  template <class Visit>
  constexpr void of(std::int32_t v, Visit visit) const {
    const std::int32_t* const node_of = nodes_.data();
    const std::int32_t end = begin_[std::size_t(v) + 1];
    for (std::int32_t i = begin_[std::size_t(v)]; i < end; ++i) visit(node_of[i]);
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
    value* const values = g_.values.data();
    for (int i = 0; i < n_.inputs; ++i) collect(values[n_.in[i]].layout, n_.loops.in[i]);
    for (int o = 0; o < n_.outputs; ++o) collect(values[n_.out[o]].layout, n_.loops.out[o]);
    if (!any_) return;
    for (int i = 0; i < n_.inputs; ++i)
      if (refine(values[n_.in[i]].layout, n_.loops.in[i])) changed(n_.in[i]);
    for (int o = 0; o < n_.outputs; ++o)
      if (refine(values[n_.out[o]].layout, n_.loops.out[o])) changed(n_.out[o]);
  }

 private:
  graph& g_;
  const node& n_;
  short_list cuts_[short_list::largest + 1]{};
  bool any_ = false;

  constexpr void collect(const sharding& s, const short_list& factors) {
    for (int d = 0; d < factors.count; ++d) {
      const short_list& axes = s.axes[d];
      if (axes.count == 0 || n_.loops.is_blocked(factors[d])) continue;
      short_list& cut = cuts_[factors[d]];
      if (cut.count < axes.count) cut = axes;
      any_ = true;
    }
  }
  constexpr bool refine(sharding& s, const short_list& factors) {
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
