// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Sharding propagation: spreads the annotated shardings of a program to all its tensors.

#include <gshard/core/base/list.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/pass/live_nodes.hpp>
#include <gshard/core/pass/neighbors.hpp>
#include <gshard/core/pass/reader_counts.hpp>
#include <gshard/core/reshard/cost.hpp>
#include <gshard/core/reshard/halo.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

namespace detail {

/// The level at which a node propagates. 0: elementwise operations. 1: all other operations. 2: broadcasts, whose results may have many
/// shardings at no cost. Contractions, which leave a partial sum, have a level of their own after these.
inline constexpr int level_of_contractions = 3;
constexpr int level_of(const graph& g, const node& n) {
  const int rank = n.rule.out[0].count;
  switch (traits(n.kind).spreads) {
    case propagation::first: return 0;
    case propagation::first_unless_broadcast:
      for (int i = 0; i < n.inputs; ++i)
        if (n.rule.in[i].count < rank) return 2;
      return 0;
    case propagation::first_if_one_operand: return n.inputs == 1 && g.at(n.in[0]).rank() == rank ? 0 : 1;
    default: return 1;
  }
}

/// Propagates shardings through one node. Each factor takes the longest list of mesh axes among its dims. If two lists conflict, that of
/// the largest tensor wins. Open dims with fewer axes are refined. A contracted factor passes its axes from one operand to another at the
/// level of contractions. It does so at once if completing the sum is known to cost less than moving the operand.
class node_propagation {
 public:
  /// priority: shardings annotated with a greater number do not propagate yet.
  constexpr node_propagation(graph& g, const node& n, const extents& e, int priority)
      : g_(g), n_(n), e_(e), priority_(priority), taps_(traits(n.kind).taps) {}

  /// Returns true if contractions are left for their level.
  template <class Changed>
  constexpr bool run(int level, Changed changed) {
    value* const values = g_.values.data();
    for (int i = 0; i < n_.inputs; ++i) collect(values[n_.in[i]], factors_of(i));
    for (int o = 0; o < n_.outputs; ++o) collect(values[n_.out[o]], n_.rule.out[o]);
    const bool waits = level < level_of_contractions && is_contraction(n_);
    const std::uint32_t left = waits ? costly_contractions() : 0u;
    sharded_ &= ~left;
    if (!sharded_) return left != 0;
    for (int i = 0; i < n_.inputs; ++i)
      if (refine(values[n_.in[i]], factors_of(i))) changed(n_.in[i]);
    for (int o = 0; o < n_.outputs; ++o)
      if (refine(values[n_.out[o]], n_.rule.out[o])) changed(n_.out[o]);
    return left != 0;
  }

 private:
  graph& g_;
  const node& n_;
  const extents& e_;
  int priority_;
  bool taps_;
  short_list axes_of_factor_[short_list::largest + 1]{};
  const value* from_[short_list::largest + 1]{};
  std::uint32_t sharded_ = 0;  // factors that some axis shards

  constexpr short_list factors_of(int i) const {
    return taps_ ? longer_factors(n_, i, g_.windows, e_) : n_.rule.in[i];
  }
  constexpr void collect(const value& v, const short_list& factors) {
    if (v.priority > priority_) return;
    const short_list* const all = v.layout.axes;
    for (int d = 0; d < factors.count; ++d) {  // most dims are unsharded, and leave at once
      const short_list& axes = all[d];
      if (axes.count == 0) continue;
      const std::uint32_t f = (factors.bits >> d * short_list::width) & short_list::largest;
      if (n_.rule.is_blocked(int(f))) continue;
      short_list& of_factor = axes_of_factor_[f];
      const value*& from = from_[f];
      sharded_ |= 1u << f;
      if (of_factor.count >= axes.count && axes.is_prefix_of(of_factor)) continue;
      if (!of_factor.is_prefix_of(axes) && elements(*from) >= elements(v)) continue;
      of_factor = axes;
      from = &v;
    }
  }
  /// The contracted factors, a bit each, that some axis shards in one operand and not yet in another. Factors whose sum is known to be
  /// cheap are left out.
  constexpr std::uint32_t costly_contractions() const {
    const std::uint32_t contracted = sharded_ & ~n_.rule.out[0].mask();
    std::uint32_t costly = contracted;
    for (int f = 0; (contracted >> f) != 0; ++f)
      if (((contracted >> f) & 1u) && (all_have(f) || sum_is_cheap(f))) costly &= ~(1u << f);
    return costly;
  }
  constexpr bool all_have(int f) const {
    for (int i = 0; i < n_.inputs; ++i)
      if (const int d = n_.rule.in[i].find(f); d >= 0 && !g_.at(n_.input(i)).layout[d].same(axes_of_factor_[f])) return false;
    return true;
  }
  /// True if completing the sum over a factor is known to cost fewer bytes than moving the operand that is sharded along it. The move would
  /// go to a factor that all tensors have, or, if there is none, to all devices.
  constexpr bool sum_is_cheap(int f) const {
    const value &operand = *from_[f], &result = g_.at(n_.output());
    const std::uint32_t axes = axes_of_factor_[f].mask();
    if ((axes & ~e_.known_axes) || !is_known(operand) || !is_known(result)) return false;
    std::uint32_t shared = n_.rule.out[0].mask();
    for (int i = 0; i < n_.inputs; ++i) shared &= n_.rule.in[i].mask();
    const std::int64_t devices = e_.devices(axes), shard = shard_elements(operand.dims, operand.layout, e_) * size_of(operand.type);
    const std::int64_t sum = bytes_of_sum(shard_elements(result.dims, result.layout, e_) * size_of(result.type), result.type, devices);
    return sum < (shared != 0 ? shard - shard / devices : shard * (devices - 1));
  }
  constexpr bool is_known(const value& v) const {
    for (int d = 0; d < v.rank(); ++d)
      if (!e_.knows_dim(v.dims[d])) return false;
    return (v.layout.used() & ~e_.known_axes) == 0;
  }
  constexpr std::int64_t elements(const value& v) const {
    std::int64_t n = 1;
    for (int d = 0; d < v.dims.count; ++d) n *= e_.dim(v.dims[d]);
    return n;
  }
  /// An open dim takes the axes of its factor. If the tensor uses some of them elsewhere, an annotation takes only the axes before these.
  constexpr bool refine(value& v, const short_list& factors) {
    sharding& s = v.layout;
    if (!s.open) return false;
    bool changed = false;
    for (int d = 0; d < factors.count; ++d) {
      const std::uint32_t f = (factors.bits >> d * short_list::width) & short_list::largest;
      if (!((sharded_ >> f) & 1u)) continue;
      short_list& axes = s.axes[d];
      if (axes_of_factor_[f].count <= axes.count || !s.is_open(d)) continue;  // most dims have their axes already
      short_list of_factor = axes_of_factor_[f];
      const bool annotated = v.producer >= 0 && traits(g_.nodes.data()[v.producer].kind).annotates;
      while (annotated && of_factor.count > axes.count && ((s.used() >> of_factor.back()) & 1u)) of_factor.pop_back();
      if (of_factor.count <= axes.count || !axes.is_prefix_of(of_factor)) continue;
      const std::uint32_t added = of_factor.mask() & ~axes.mask();
      if (added & (s.used() | s.partial)) continue;
      axes = of_factor;
      changed = true;
    }
    return changed;
  }
};

}  // namespace detail

/// Spreads the annotated shardings to all tensors of a program, forward and backward, to a fixed point. A sharding only gets more specific.
///
/// Annotations of priority 0 propagate first, then those of priority 1, and so on. Within one priority, elementwise operations come first,
/// then other operations, then broadcasts, and contractions last. Within one level, tensors fewer operations away from an annotation come
/// first, beginning with parameters. If two shardings of one factor conflict, that of the larger tensor wins.
/// `order`: the order in which nodes are visited if all this is equal; empty: their own order.
constexpr void propagate(graph& g, const extents& e, list_view<std::int32_t> order = {}) {
  const detail::neighbors near(g, order);
  constexpr int contractions = detail::level_of_contractions;
  list<std::int32_t> queues[contractions + 1];
  std::size_t next[contractions + 1]{};
  // By node: whether it waits in the queue of its own level, and in the queue of contractions.
  list<char> own_queue(g.nodes.size(), 0), last_queue(g.nodes.size(), 0);
  char *const waiting = own_queue.data(), *const waiting_last = last_queue.data();
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
    for (std::size_t i = 0; i < g.nodes.size(); ++i)
      if (const node& n = g.nodes.data()[order.empty() ? std::int32_t(i) : order[i]]; traits(n.kind).annotates) start(n.output());
    for (const port& p : g.inputs) start(p.value);
    for (int level = 0; level <= contractions;) {
      if (next[level] == queues[level].size()) {
        ++level;
        continue;
      }
      const std::int32_t n = queues[level][next[level]++];
      (level == contractions ? waiting_last : waiting)[n] = 0;
      detail::node_propagation node(g, g.nodes[std::size_t(n)], e, priority);
      const bool left = node.run(level, [&](std::int32_t v) { near.of(v, enqueue); });
      if (left && !waiting_last[n]) {
        waiting_last[n] = 1;
        queues[contractions].push_back(n);
      }
      level = 0;
    }
  }
}

/// If an annotation is the only reader of a tensor, the tensor is wanted in the annotated sharding. The same holds for a loop's carry.
constexpr void want_annotated(graph& g) {
  bool annotated = false;
  for (const node& n : g.nodes) annotated = annotated || traits(n.kind).annotates;
  if (!annotated) return;
  const list<char> live = detail::live_nodes(g);
  const list<std::int32_t> readers = detail::reader_counts(g, live);
  for (std::size_t i = g.nodes.size(); i-- > 0;) {
    const node& n = g.nodes[i];
    if (!live[i] || !traits(n.kind).annotates || n.attr.may_move) continue;
    if (n.inputs == 0 || writes_row(n)) continue;
    const std::int32_t given = n.input(n.inputs - 1);
    value& source = g.at(given);
    if (source.producer < 0 || readers[std::size_t(given)] != 1) continue;
    const op_ref maker = g.nodes[std::size_t(source.producer)].kind;
    if (maker == op::annotate || traits(maker).declares_result) continue;
    source.layout = g.at(n.output()).layout;
    if (!traits(maker).only_moves) source.layout.order = 0;  // operations that compute use the mesh's device order
  }
}

}}  // namespace gshard::v0
