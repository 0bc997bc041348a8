// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/list.hpp>
#include <gshard/ir/graph.hpp>
#include <gshard/pass/cost.hpp>
#include <gshard/pass/windowed.hpp>

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

/// What is decided first: 0 tensors that lie alike because an operation passes them through element by element, 1 the others, 2 what
/// is broadcast, which may lie in many ways at no cost.
constexpr int level_of(const graph& g, const node& n) {
  switch (n.kind) {
    case op::map: {
      const int rank = n.loops.out[0].count;
      for (int i = 0; i < n.inputs; ++i)
        if (n.loops.in[i].count < rank) return 2;
      return 0;
    }
    case op::scale:
    case op::cast:
    case op::annotate:
    case op::carry:
    case op::dropout:
    case op::reshape:
    case op::softmax:
    case op::softmax_grad: return 0;
    case op::einsum: return n.inputs == 1 && g.at(n.in[0]).rank() == n.loops.out[0].count ? 0 : 1;
    default: return 1;
  }
}

/// Every factor of a node takes the longest list of axes that one of its dims has; of lists that contradict each other that of the
/// tensor with most elements. Open dims that have less are refined.
class node_propagation {
 public:
  /// priority: layouts that were given with a greater number do not speak yet.
  constexpr node_propagation(graph& g, const node& n, const extents& e, int priority) : g_(g), n_(n), e_(e), priority_(priority) {}

  template <class Changed>
  constexpr void run(Changed changed) {
    value* const values = g_.values.data();
    for (int i = 0; i < n_.inputs; ++i) collect(values[n_.in[i]], factors_of(i));
    for (int o = 0; o < n_.outputs; ++o) collect(values[n_.out[o]], n_.loops.out[o]);
    if (!cut_) return;
    for (int i = 0; i < n_.inputs; ++i)
      if (refine(values[n_.in[i]].layout, factors_of(i))) changed(n_.in[i]);
    for (int o = 0; o < n_.outputs; ++o)
      if (refine(values[n_.out[o]].layout, n_.loops.out[o])) changed(n_.out[o]);
  }

 private:
  graph& g_;
  const node& n_;
  const extents& e_;
  int priority_;
  short_list cuts_[short_list::largest + 1]{};
  const value* from_[short_list::largest + 1]{};
  std::uint32_t cut_ = 0;  // factors that some axis cuts

  constexpr short_list factors_of(int i) const {
    return n_.kind == op::convolution ? longer_factors(n_, i, g_.windows, e_) : n_.loops.in[i];
  }
  constexpr void collect(const value& v, const short_list& factors) {
    if (v.priority > priority_) return;
    const sharding& s = v.layout;
    for (int d = 0; d < factors.count; ++d) {
      const short_list& axes = s.axes[d];
      if (axes.count == 0 || n_.loops.is_blocked(factors[d])) continue;
      short_list& cut = cuts_[factors[d]];
      const value*& from = from_[factors[d]];
      cut_ |= 1u << factors[d];
      if (cut.count >= axes.count && axes.is_prefix_of(cut)) continue;
      if (!cut.is_prefix_of(axes) && elements(*from) >= elements(v)) continue;
      cut = axes;
      from = &v;
    }
  }
  constexpr std::int64_t elements(const value& v) const {
    std::int64_t n = 1;
    for (int d = 0; d < v.dims.count; ++d) n *= e_.dim(v.dims[d]);
    return n;
  }
  constexpr bool refine(sharding& s, const short_list& factors) {
    if (!s.open) return false;
    bool changed = false;
    for (int d = 0; d < factors.count; ++d) {
      const int f = factors[d];
      if (!((cut_ >> f) & 1u)) continue;
      const short_list& cut = cuts_[f];
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

/// Spreads the annotated layouts to all tensors of a program, both ways, to a fixed point. A layout only gets more specific.
///
/// First the annotations of priority 0 are spread, then those of priority 1, and so on. Of one priority first all that operations pass
/// through element by element, then through other operations, broadcasts last; among equals, what is fewer operations away from its
/// annotation, parameters first. Where a factor of one operation meets two layouts that contradict each other, that of the larger
/// tensor holds.
constexpr void propagate(graph& g, const extents& e) {
  const detail::neighbours near(g);
  constexpr int levels = 3;
  list<std::int32_t> queues[levels];
  std::size_t next[levels]{};
  list<char> in_queue(g.nodes.size(), 0);
  char* const waiting = in_queue.data();
  const auto enqueue = [&queues, &g, waiting](std::int32_t n) {
    if (waiting[n]) return;
    waiting[n] = 1;
    queues[detail::level_of(g, g.nodes.data()[n])].push_back(n);
  };
  int last = 0;
  for (int priority = 0; priority <= last; ++priority) {
    const auto start = [&](std::int32_t v) {
      const value& t = g.at(v);
      if (t.priority > last) last = t.priority;
      if (t.priority == priority && t.layout.used()) near.of(v, enqueue);
    };
    for (const parameter& p : g.parameters) start(p.value);
    for (const node& n : g.nodes)
      if (n.kind == op::annotate || n.kind == op::carry) start(n.output());
    for (const port& p : g.inputs) start(p.value);
    for (int level = 0; level < levels;) {
      if (next[level] == queues[level].size()) {
        ++level;
        continue;
      }
      const std::int32_t n = queues[level][next[level]++];
      waiting[n] = 0;
      detail::node_propagation(g, g.nodes[std::size_t(n)], e, priority).run([&](std::int32_t v) { near.of(v, enqueue); });
      level = 0;
    }
  }
}

/// What is used by an annotation alone is wanted as that says.
constexpr void want_annotated(graph& g) {
  list<std::int32_t> uses(g.values.size(), 0);
  bool annotated = false;
  for (const node& n : g.nodes) {
    annotated = annotated || n.kind == op::annotate || n.kind == op::carry;
    for (int i = 0; i < n.inputs; ++i) ++uses.data()[n.in[i]];
  }
  if (!annotated) return;
  for (const port& p : g.outputs) ++uses[std::size_t(p.value)];
  for (const parameter& p : g.parameters)
    if (p.updated >= 0) ++uses[std::size_t(p.updated)];
  for (std::size_t i = g.nodes.size(); i-- > 0;) {
    const node& n = g.nodes[i];
    if (n.kind != op::carry && (n.kind != op::annotate || n.attr.integer[0] != 0)) continue;
    const std::int32_t given = n.input(n.inputs - 1);
    value& source = g.at(given);
    if (source.producer < 0 || uses[std::size_t(given)] != 1) continue;
    const op maker = g.nodes[std::size_t(source.producer)].kind;
    if (maker == op::annotate || maker == op::per_shard) continue;
    source.layout = g.at(n.output()).layout;
    source.layout.order = 0;  // operations are computed in the mesh's order
  }
}

}}  // namespace gshard::v0
