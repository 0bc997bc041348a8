// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/list.hpp>
#include <gshard/ir/graph.hpp>
#include <gshard/ir/mesh.hpp>
#include <gshard/pass/combine_moves.hpp>
#include <gshard/pass/cost.hpp>
#include <gshard/pass/loops.hpp>
#include <gshard/pass/reshard.hpp>
#include <gshard/pass/windowed.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// What may move without the program saying so.
enum class strictness : std::uint8_t {
  automatic,  // everything
  visible,    // everything but gathers
  strict,     // nothing: every operand lies as its operation takes it, every sum is completed by an annotation
};

namespace detail {

/// A graph after partitioning: every value has one complete layout, moves between layouts are nodes of their own.
struct partitioned {
  list<value> values;
  list<node> steps;
  list<parameter> parameters;
  list<port> inputs, outputs;
};

/// The tensors of a graph in all the layouts that a plan has them in, its versions, and the steps that make one of another.
class tensor_versions {
 protected:
  constexpr tensor_versions(graph& g, const mesh_shape& mesh, const extents& e, strictness unsaid, std::int64_t combine_bytes)
      : g_(g),
        mesh_(mesh),
        axes_(mesh.count),
        e_(e),
        unsaid_(unsaid),
        first_(g.values.size(), -1),
        overwritten_(g.values.size(), 0),
        moves_(result_.steps, result_.values, g.windows, e, combine_bytes),
        loops_(g) {}

  graph& g_;
  const mesh_shape& mesh_;
  int axes_;
  const extents& e_;
  strictness unsaid_;
  list<std::int32_t> first_;  // by value of the graph: its first version, a value of the plan
  list<std::int32_t> next_;   // by value of the plan: the next version of the same tensor
  list<char> overwritten_;    // by value of the graph: a node before wrote over it
  partitioned result_;
  move_combiner moves_;
  open_loops loops_;
  // The node that is placed, its operand that is fetched, and whether the program says that this may move.
  op serving_ = op::annotate;
  code_place place_;
  int operand_ = 0;
  bool said_ = true;

  constexpr const value& version(std::int32_t v) const { return result_.values[std::size_t(v)]; }

  /// How a node takes an operand or leaves a result: its layout, and the windows of dims that are cut.
  struct held_as {
    sharding layout;
    dim_list windows;
  };

  /// A new version of tensor `of` (a value of the graph) with this layout.
  constexpr std::int32_t add_version(std::int32_t of, const sharding& layout, const dim_list& windows = {}) {
    value v = g_.at(of);
    v.layout = layout;
    v.layout.open = 0;
    v.windows = windows;
    v.producer = std::int32_t(result_.steps.size());
    const auto id = std::int32_t(result_.values.size());
    result_.values.push_back(v);
    next_.push_back(-1);
    std::int32_t* last = &first_[std::size_t(of)];
    while (*last >= 0) last = &next_[std::size_t(*last)];
    *last = id;
    return id;
  }
  constexpr void enter(std::int32_t v) {
    const std::int32_t id = add_version(v, g_.at(v).layout);
    result_.values[std::size_t(id)].producer = -1;
  }
  /// The tensor whose storage `v` shares: itself, or what it is another name of.
  constexpr std::int32_t root(std::int32_t v) const {
    for (;;) {
      const std::int32_t producer = g_.at(v).producer;
      if (producer < 0) return v;
      const node& n = g_.nodes[std::size_t(producer)];
      if (!traits(n.kind).alias) return v;
      v = n.in[0];
    }
  }

  /// What it costs to bring a tensor from one layout to another, orders of the devices included.
  constexpr std::int64_t reshard_cost(const value& v, const sharding& from, const sharding& to) const {
    const move_list way = plan_reshard(v, from, to, e_);
    if ((from.order | to.order) == 0 || way.moves[way.count - 1].kind == op::slice) return way.cost();
    value before = v, after = v;
    before.layout = way.count > 1 ? way.moves[way.count - 2].to : from;
    after.layout = to;
    const std::int64_t bytes = bytes_between_orders(before, after, g_.windows, g_.orders, e_);
    return way.cost() + (bytes > 0 ? bytes : -start_bytes);
  }
  /// What it costs to have tensor `of` in this layout, from the version that is cheapest to start from.
  constexpr std::int64_t cost(std::int32_t of, const sharding& layout, std::int32_t* from = nullptr) const {
    std::int64_t best = -1;
    const value* const versions = result_.values.data();
    for (std::int32_t v = first_[std::size_t(of)]; v >= 0; v = next_[std::size_t(v)]) {
      const sharding& s = versions[v].layout;
      if ((layout.partial & ~s.partial) || versions[v].windows.count > 0) continue;
      const std::int64_t c = s.same_layout(layout) ? 0 : 1 + reshard_cost(versions[v], s, layout);
      if (best < 0 || c < best) {
        best = c;
        if (from) *from = v;
      }
      if (best == 0) break;
    }
    return best;
  }

  constexpr void check_not_overwritten(std::int32_t of) {
    const std::int32_t owner = root(of);
    if (!overwritten_[std::size_t(owner)]) return;
    for (const parameter& p : g_.parameters)
      if (p.value == owner) g_.problem.report(fault::read_after_update, p.name.view());
  }
  /// A step that brings tensor `of` from one version to another; where a loop needs it, before the loop if the tensor is there already.
  constexpr std::int32_t add_move(op kind, std::uint32_t axes, std::int32_t of, std::int32_t from, std::int32_t to) {
    node n;
    n.kind = kind;
    n.inputs = n.outputs = 1;
    n.in[0] = from;
    n.out[0] = to;
    n.attr.integer[0] = std::int32_t(axes);
    n.place = place_;
    if (unsaid_ != strictness::automatic) check_said(n);
    if (!loops_.none_open()) loops_.steps_before(of, result_.steps).push_back(n);
    else if (kind == op::slice) result_.steps.push_back(n);
    else moves_.add(n);
    return to;
  }
  /// Whether the program says that a tensor may be brought to other layouts where it is used.
  constexpr bool may_move(std::int32_t v) const {
    const std::int32_t producer = g_.at(v).producer;
    return producer >= 0 && g_.nodes[std::size_t(producer)].kind == op::annotate && g_.nodes[std::size_t(producer)].attr.integer[0] != 0;
  }
  /// Reports a move that strictness does not allow.
  constexpr void check_said(const node& move) {
    if (said_ || !traits(move.kind).collective) return;
    const sharding &from = version(move.in[0]).layout, &to = version(move.out[0]).layout;
    const bool gathers = (from.used() & ~to.used()) != 0, sums = (from.partial & ~to.partial) != 0;
    if (unsaid_ == strictness::visible && (!gathers || sums)) return;
    int axis = 0;
    while (!((std::uint32_t(move.attr.integer[0]) >> axis) & 1u)) ++axis;
    const fault what = unsaid_ == strictness::visible ? fault::implicit_gather : sums ? fault::implicit_sum : fault::implicit_move;
    g_.problem.report(what, name(serving_), mesh_.name(axis), operand_, int(place_.line));
  }
  /// The version of `of` in this layout; adds the moves that make it.
  constexpr std::int32_t fetch(std::int32_t of, const sharding& layout) {
    std::int32_t now = -1;
    const bool here = cost(of, layout, &now) == 0;
    check_not_overwritten(of);
    if (here || g_.problem) return now;
    for (const move& m : plan_reshard(version(now), version(now).layout, layout, e_)) {
      const std::int32_t from = now;
      now = add_move(m.kind, m.axes, of, from, add_version(of, m.to));
    }
    return now;
  }

  /// Of a move to or from what windows read.
  constexpr std::int64_t exchange_cost(const value& from, const value& to) const {
    const std::int64_t bytes = from.layout.order == to.layout.order ? bytes_lacking(from, to, g_.windows, e_)
                                                                     : bytes_between_orders(from, to, g_.windows, g_.orders, e_);
    return bytes == 0 ? 1 : bytes + start_bytes;
  }
  /// What it costs to have tensor `of` so, and the version to start from; -1: bring it to the plain layout first.
  constexpr std::int64_t cost(std::int32_t of, const held_as& wanted, std::int32_t& from) const {
    value goal = g_.at(of);
    goal.layout = wanted.layout;
    goal.windows = wanted.windows;
    value plain = goal;
    plain.windows = {};
    from = -1;
    std::int64_t best = cost(of, wanted.layout) + exchange_cost(plain, goal);
    for (std::int32_t v = first_[std::size_t(of)]; v >= 0; v = next_[std::size_t(v)]) {
      const value& have = version(v);
      if (have.layout.partial != wanted.layout.partial) continue;
      std::int64_t c = 0;
      if (have.windows.empty()) c = exchange_cost(have, goal);
      else if (have.windows != wanted.windows || !have.layout.same_layout(wanted.layout)) continue;
      if (c > best || (c == best && from >= 0)) continue;
      best = c;
      from = v;
    }
    return best;
  }
  constexpr std::int32_t fetch(std::int32_t of, const held_as& wanted) {
    if (wanted.windows.empty()) return fetch(of, wanted.layout);
    std::int32_t from = -1;
    cost(of, wanted, from);
    check_not_overwritten(of);
    if (g_.problem) return from;
    if (from < 0) from = fetch(of, wanted.layout);
    if (version(from).windows == wanted.windows) return from;
    return exchange(from, of, wanted);
  }
  /// From one complete layout to another, where devices hold what windows read before or after: one exchange.
  constexpr std::int32_t exchange(std::int32_t from, std::int32_t of, const held_as& wanted) {
    const std::int32_t to = add_version(of, wanted.layout, wanted.windows);
    const value &before = version(from), &after = version(to);
    bool contained = true;
    for (int d = 0; d < before.rank(); ++d) {
      const bool plain = before.windows.empty() && (after.windows.empty() || after.windows[d] == 0) &&
                         before.layout.order == after.layout.order;
      contained = contained && (before.layout[d].empty() || (plain && before.layout[d].is_prefix_of(after.layout[d])));
    }
    const bool has_all = contained || lacks_nothing(before, after, g_.windows, g_.orders, e_);
    sharding reordered = before.layout;
    reordered.order = after.layout.order;
    const op kind = has_all ? op::slice : reordered.same_layout(after.layout) ? op::collective_permute : op::all_to_all;
    return add_move(kind, (before.layout.order | after.layout.order) ? e_.known_axes : axes_of_move(before, after), of, from, to);
  }
  constexpr std::int32_t alias(std::int32_t source, std::int32_t as) {
    node n;
    n.kind = op::annotate;
    n.place = place_;
    n.inputs = n.outputs = 1;
    n.in[0] = source;
    n.out[0] = add_version(as, version(source).layout);
    result_.steps.push_back(n);
    return n.out[0];
  }
};

}  // namespace detail

}}  // namespace gshard::v0
