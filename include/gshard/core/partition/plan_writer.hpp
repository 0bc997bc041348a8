// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Writes the steps of a plan, and adds the reshards of each node's operands.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/partition/layout_cache.hpp>
#include <gshard/core/partition/row_counts.hpp>
#include <gshard/core/reshard/cost.hpp>
#include <gshard/core/reshard/halo.hpp>
#include <gshard/core/reshard/reshard.hpp>
#include <gshard/core/schedule/while_loop.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

namespace detail {

/// The reader for which a tensor is resharded.
struct consumer {
  op_ref kind = op::annotate;
  code_place place;
  int operand = 0;
  bool may_move = true;  ///< The program allows this operand to move; otherwise strictness decides.
};

/// The steps of a plan under construction, and the forms of its tensors.
class plan_writer {
 public:
  constexpr plan_writer(graph& g, const mesh_shape& mesh, const extents& e, strictness implicit, std::int64_t combine_bytes)
      : cache(g, e),
        g_(g),
        mesh_(mesh),
        e_(e),
        implicit_(implicit),
        combines_(combine_bytes > 0),
        loops_(g) {}
  plan_writer(const plan_writer&) = delete;

  layout_cache cache;
  list<node> steps;

  /// Adds the first form of an input or a parameter.
  constexpr void enter(std::int32_t tensor) { cache.add(tensor, g_.at(tensor).layout, {}, -1); }
  /// Adds a form that the next step makes.
  constexpr std::int32_t add_result(std::int32_t tensor, const sharding& layout, const dim_list& windows = {}) {
    return cache.add(tensor, layout, windows, std::int32_t(steps.size()));
  }
  /// Adds a step that computes.
  constexpr void add(const node& step) {
    if (traits(step.kind).nesting > 0) loops_.open(steps.size());
    steps.push_back(step);
    if (traits(step.kind).nesting < 0) loops_.close(steps, cache.values);
  }
  /// Adds a second name for a value of the plan, as the first form of tensor `as`.
  constexpr void add_alias(std::int32_t source, std::int32_t as, const code_place& place) {
    node n;
    n.kind = op::annotate;
    n.place = place;
    n.inputs = n.outputs = 1;
    n.in[0] = source;
    n.out[0] = add_result(as, cache.at(source).layout);
    steps.push_back(n);
  }

  /// True if moves of one node may be combined.
  constexpr bool combines() const { return loops_.none_open() && combines_; }

  /// Returns the tensor in this sharding, and adds the moves that make it.
  constexpr std::int32_t get_or_reshard(std::int32_t tensor, const sharding& layout, const consumer& reader) {
    std::int32_t now = -1;
    const bool exists = cache.cost_of_move(tensor, layout, &now) == 0;
    check_not_overwritten(tensor);
    if (exists || g_.problem) return now;
    if (cache.is_repeated(tensor, layout)) return repeat(tensor, layout, reader);
    return reshard(tensor, now, cache.moves_between(tensor, cache.at(now), cache.at(now).layout, layout), reader);
  }
  /// Adds the moves of a reshard from a form of a tensor. Returns the form that they make.
  constexpr std::int32_t reshard(std::int32_t tensor, std::int32_t now, const move_list& way, const consumer& reader) {
    const value form = cache.at(now);
    bool is_sent = false;  // `now` has its elements as devices send them
    for (const move& m : way) is_sent = is_sent || (traits(m.kind).collective && sent(form).type != form.type);
    if (is_sent) now = rounded(tensor, now, reader);
    for (const move& m : way) {
      const std::int32_t from = now;
      const bool ragged = traits(m.kind).ragged;
      const std::int32_t counts = ragged ? row_counts(g_, tensor) : -1;
      const std::int32_t counted = ragged ? get_or_reshard(counts, sharding_of_counts(cache.at(from).layout), reader) : -1;
      now = is_sent ? add_sent(form, m.to, {}) : add_result(tensor, m.to);
      if (ragged) add_ragged(m, tensor, from, now, counts, counted, reader);
      else add_move(m.kind, m.axes, tensor, from, now, reader);
    }
    return is_sent ? add_cast(tensor, now, add_result(tensor, cache.at(now).layout), reader) : now;
  }
  /// Rounds the first form of a tensor here, if it is an addend that travels as bf16.
  constexpr void round_addend(std::int32_t tensor, const consumer& reader) {
    const std::int32_t first = cache.first(tensor);
    if (const value& v = cache.at(first); v.layout.partial == 0 || sent(v).type == v.type || !loops_.none_open()) return;
    if (rounded_.empty()) rounded_ = list<std::int32_t>(g_.values.size(), -1);
    rounded_[std::size_t(tensor)] = rounded(tensor, first, reader);
  }
  /// get_or_reshard for a form that may have windows.
  constexpr std::int32_t get_or_reshard(std::int32_t tensor, const sharded_form& wanted, const consumer& reader) {
    if (wanted.windows.empty()) return get_or_reshard(tensor, wanted.layout, reader);
    std::int32_t from = -1;
    cache.cost(tensor, wanted, from);
    check_not_overwritten(tensor);
    if (g_.problem) return from;
    if (from < 0) from = get_or_reshard(tensor, wanted.layout, reader);
    if (cache.at(from).windows == wanted.windows) return from;
    return exchange(from, tensor, wanted, reader);
  }
  /// Reshards a tensor from one form to another in one exchange, or by a local slice if every device has all it needs. A partial sum stays
  /// partial.
  constexpr std::int32_t exchange(std::int32_t from, std::int32_t tensor, const sharded_form& wanted, const consumer& reader) {
    const std::int32_t to = add_result(tensor, wanted.layout, wanted.windows);
    const value before = cache.at(from), after = cache.at(to);
    bool contained = true;
    for (int d = 0; d < before.rank(); ++d) {
      const bool plain = before.windows.empty() && (after.windows.empty() || after.windows[d] == 0) &&
                         before.layout.order == after.layout.order;
      contained = contained && (before.layout[d].empty() || (plain && before.layout[d].is_prefix_of(after.layout[d])));
    }
    const bool has_all = contained || lacks_nothing(before, after, g_.windows, g_.orders, e_);
    sharding reordered = before.layout;
    reordered.order = after.layout.order;
    const op_ref kind = has_all ? op::slice : reordered.same_layout(after.layout) ? op::collective_permute : op::all_to_all;
    const bool between_orders = before.layout.order | after.layout.order;
    const std::uint32_t axes = between_orders ? e_.known_axes : axes_of_move(before, after);
    if (has_all || sent(before).type == before.type) return add_move(kind, axes, tensor, from, to, reader);
    const std::int32_t narrow = rounded(tensor, from, reader);
    return add_cast(tensor, add_move(kind, axes, tensor, narrow, add_sent(after, after.layout, after.windows), reader), to, reader);
  }

  constexpr void check_not_overwritten(std::int32_t tensor) {
    if (!cache.is_overwritten(tensor)) return;
    for (const parameter& p : g_.parameters)
      if (p.value == cache.owner(tensor)) g_.problem.report(fault::read_after_update, p.name.view());
  }

 private:
  graph& g_;
  const mesh_shape& mesh_;
  const extents& e_;
  strictness implicit_;
  list<std::int32_t> rounded_;  // by tensor: the elements of its first form as devices send them, or -1
  bool combines_;
  open_loops loops_;

  /// Runs the node of a tensor again, in another sharding.
  constexpr std::int32_t repeat(std::int32_t tensor, const sharding& layout, const consumer& reader) {
    node step = g_.nodes[std::size_t(g_.at(tensor).producer)];
    const repetition r = repeat_in(step, layout);
    for (int i = 0; i < step.inputs; ++i) step.in[i] = get_or_reshard(step.input(i), r.in[i], reader);
    step.out[0] = add_result(tensor, layout);
    step.place.gradient = reader.place.gradient;
    step.place.position = reader.place.position;  // not earlier, as then it would use memory until its reader runs
    add_form(step, tensor);
    return step.out[0];
  }
  /// Adds a step that makes a form of a tensor. If the tensor is loop-invariant, the step goes before the loop.
  constexpr void add_form(const node& step, std::int32_t tensor) {
    (loops_.none_open() ? steps : loops_.steps_before(tensor, steps)).push_back(step);
  }
  /// Adds a value that devices exchange: the elements of `form` in this layout.
  constexpr std::int32_t add_sent(const value& form, const sharding& layout, const dim_list& windows) {
    value v = form;
    v.layout = layout;
    v.layout.open = 0;
    v.windows = windows;
    return cache.add_sent(v, std::int32_t(steps.size()));
  }
  /// The elements of a form as devices send them.
  constexpr std::int32_t rounded(std::int32_t tensor, std::int32_t form, const consumer& reader) {
    if (form == cache.first(tensor) && !rounded_.empty() && rounded_[std::size_t(tensor)] >= 0) return rounded_[std::size_t(tensor)];
    return add_cast(tensor, form, add_sent(cache.at(form), cache.at(form).layout, cache.at(form).windows), reader);
  }
  /// Adds the step that rounds the elements of a shard before a collective, or converts them back.
  constexpr std::int32_t add_cast(std::int32_t tensor, std::int32_t from, std::int32_t to, const consumer& reader) {
    node n;
    n.kind = op::cast;
    n.inputs = n.outputs = 1;
    n.in[0] = from;
    n.out[0] = to;
    for (int d = 0; d < cache.at(to).rank(); ++d) n.rule.in[0].push_back(d);
    n.rule.out[0] = n.rule.in[0];
    n.place = reader.place;
    add_form(n, tensor);
    cache.values[std::size_t(to)].producer = std::int32_t(steps.size()) - 1;
    return to;
  }
  /// Adds a move of a tensor from one form to another. Moves of loop-invariant tensors go before the loop.
  constexpr std::int32_t add_move(op_ref kind, std::uint32_t axes, std::int32_t tensor, std::int32_t from, std::int32_t to,
                                  const consumer& reader) {
    node n;
    n.kind = kind;
    n.inputs = n.outputs = 1;
    n.in[0] = from;
    n.out[0] = to;
    n.attr.axes = axes;
    n.place = reader.place;
    add_move(n, tensor, reader);
    return to;
  }
  constexpr void add_move(const node& n, std::int32_t tensor, const consumer& reader) {
    if (implicit_ != strictness::automatic && !reader.may_move) check_allowed(n, reader);
    add_form(n, tensor);
  }
  /// Adds a move of the rows in use of a tensor, and of their counts. The moved counts become a form of `counts`, if it is a new form. They
  /// do not if only the rows are made in a loop: a form of a loop-invariant tensor must be made before the loop.
  constexpr void add_ragged(const move& m, std::int32_t tensor, std::int32_t from, std::int32_t to, std::int32_t counts,
                            std::int32_t counted, const consumer& reader) {
    const sharding moved = sharding_of_counts(m.to);
    node n;
    n.kind = op::ragged_all_to_all;
    n.inputs = n.outputs = 2;
    n.in[0] = from;
    n.in[1] = counted;
    n.out[0] = to;
    const bool is_new = loops_.at_one_depth(tensor, counts) && cache.cost(counts, moved) != 0;
    n.out[1] = is_new ? add_result(counts, moved) : add_sent(cache.at(counted), moved, {});
    n.attr.axes = m.axes;
    n.place = reader.place;
    add_move(n, tensor, reader);
  }
  /// Reports an implicit move that strictness does not allow.
  constexpr void check_allowed(const node& move, const consumer& reader) {
    if (!traits(move.kind).collective) return;
    const sharding &from = cache.at(move.in[0]).layout, &to = cache.at(move.out[0]).layout;
    const bool gathers = (from.used() & ~to.used()) != 0, sums = (from.partial & ~to.partial) != 0;
    if (implicit_ == strictness::visible && (!gathers || sums)) return;
    int axis = 0;
    while (!((move.attr.axes >> axis) & 1u)) ++axis;
    const fault what = implicit_ == strictness::visible ? fault::implicit_gather : sums ? fault::implicit_sum : fault::implicit_move;
    g_.problem.report(what, name(reader.kind), mesh_.name(axis), reader.operand);
    g_.problem.name_place(reader.place.line, reader.place.scope);
  }
};

}  // namespace detail

}}  // namespace gshard::v0
