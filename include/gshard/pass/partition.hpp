// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/list.hpp>
#include <gshard/ir/graph.hpp>
#include <gshard/ir/mesh.hpp>
#include <gshard/pass/cost.hpp>
#include <gshard/pass/reshard.hpp>
#include <gshard/pass/update_order.hpp>
#include <gshard/pass/work_sharing.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

namespace detail {

/// Makes a plan of a graph: chooses for one node after the other how its work is shared, and brings its operands there.
class partitioner : work_sharing {
 public:
  constexpr partitioner(graph& g, const mesh_shape& mesh, const extents& e, strictness unsaid, std::int64_t loop_bytes,
                        std::int64_t combine_bytes)
      : work_sharing(g, mesh, e, unsaid, combine_bytes), loop_bytes_(loop_bytes) {}

  constexpr partitioned run(bool keep_pending_outputs) {
    for (const parameter& p : g_.parameters) enter(p.value);
    for (const port& p : g_.inputs) enter(p.value);
    const list<char> live = live_nodes();
    find_completed(live, keep_pending_outputs);
    result_.steps.reserve(2 * g_.nodes.size());  // so that few rows move, which the evaluator pays for
    result_.values.reserve(2 * g_.values.size());
    for (const std::int32_t i : update_order(g_, live))
      if (!g_.problem) place(g_.nodes[std::size_t(i)]);
    if (g_.problem) return {};
    said_ = true;
    for (const parameter& p : g_.parameters) {
      parameter q = p;
      q.value = first_[std::size_t(p.value)];
      if (p.updated >= 0) q.updated = fetch(p.updated, result_.values[std::size_t(q.value)].layout);
      result_.parameters.push_back(q);
    }
    for (const port& p : g_.inputs) result_.inputs.push_back({p.name, first_[std::size_t(p.value)]});
    for (const port& p : g_.outputs) {
      sharding layout = version(first_[std::size_t(p.value)]).layout;
      if (!keep_pending_outputs) layout.partial = 0;
      said_ = unsaid_ != strictness::strict;
      if (const std::int32_t maker = g_.at(p.value).producer; maker >= 0) {
        serving_ = g_.nodes[std::size_t(maker)].kind;
        place_ = g_.nodes[std::size_t(maker)].place;
      }
      result_.outputs.push_back({p.name, fetch(p.value, layout)});
    }
    return static_cast<partitioned&&>(result_);
  }

 private:
  using work_sharing::cost;

  std::int64_t loop_bytes_;

  constexpr list<char> live_nodes() const {
    list<char> live(g_.nodes.size(), 0);
    list<std::int32_t> stack;
    for (const port& p : g_.outputs) stack.push_back(p.value);
    for (const parameter& p : g_.parameters)
      if (p.updated >= 0) stack.push_back(p.updated);
    const value* const values = g_.values.data();
    const node* const nodes = g_.nodes.data();
    char* const is_live = live.data();
    while (!stack.empty()) {
      const std::int32_t producer = values[stack.back()].producer;
      stack.pop_back();
      if (producer < 0 || is_live[producer]) continue;
      is_live[producer] = 1;
      const node& n = nodes[producer];
      for (int i = 0; i < n.inputs; ++i)
        if (values[n.in[i]].producer >= 0) stack.push_back(n.in[i]);
      if (n.kind == op::carry) {
        // All of a loop that is needed at all: how often the turns run is up to the others.
        for (std::size_t k = 0; k < g_.nodes.size(); ++k) {
          if (is_live[k] || !is_of_loop(nodes[k].kind) || nodes[k].attr.integer[0] != n.attr.integer[0]) continue;
          is_live[k] = 1;
          for (int i = 0; i < nodes[k].inputs; ++i) stack.push_back(nodes[k].in[i]);
        }
      }
    }
    return live;
  }
  constexpr void find_completed(const list<char>& live, bool keep_pending_outputs) {
    const node* const nodes = g_.nodes.data();
    const char* const is_live = live.data();
    char* const completed = completed_.data();
    for (std::size_t i = 0; i < live.size(); ++i)
      if (const node& n = nodes[i]; is_live[i] && !is_linear(n))
        for (int k = 0; k < n.inputs; ++k) completed[n.in[k]] = 1;
    for (const port& p : g_.outputs) (keep_pending_outputs ? stays_ : completed_)[std::size_t(p.value)] = 1;
    if (!keep_pending_outputs) return;
    for (std::size_t i = 0; i < live.size(); ++i)
      for (int k = 0; is_live[i] && k < nodes[i].inputs; ++k) stays_[std::size_t(nodes[i].in[k])] = 0;
  }

  /// What travels of an einsum (0, 1: that operand; 2: the sums of its result; -1: nothing), between which devices, and how it lies.
  struct loop {
    int travels = -1;
    std::uint32_t axes = 0;
    std::int32_t from = -1;
    sharding to;
  };
  /// Whether a tensor in this layout is known to have more than so many bytes per device.
  constexpr bool is_above(const value& v, const sharding& layout, std::int64_t bytes) const {
    for (int d = 0; d < v.rank(); ++d)
      if (!e_.knows_dim(v.dims[d])) return false;
    return (layout.used() & ~e_.known_axes) == 0 && shard_elements(v.dims, layout, e_) * size_of(v.type) > bytes;
  }
  constexpr bool may_loop(const value& v) const { return is_above(v, sharding{}, loop_bytes_); }
  /// The larger operand that one all_gather would make whole and too large.
  constexpr loop operand_loop(const node& n, const choice& c, const pending_parts& pending) const {
    loop best;
    std::int64_t most = loop_bytes_;
    for (int i = 0; i < 2; ++i) {
      const value& v = g_.at(n.input(i));
      if (!may_loop(v)) continue;
      const sharding whole = operand_of(n, i, c, pending).layout;
      std::int32_t from = -1;
      if (!is_above(v, whole, most) || cost(n.input(i), whole, &from) == 0) continue;
      if (unsaid_ != strictness::automatic && !n.place.gradient && !may_move(n.input(i))) continue;
      const sharding& lies = version(from).layout;
      const std::uint32_t axes = lies.used() & ~whole.used();
      const move_list way = plan_reshard(version(from), lies, whole, e_);
      if (way.count != 1 || way.moves[0].kind != op::all_gather || !lies.without(axes).same_layout(whole)) continue;
      // Every device begins with its own block, and copies of a sum must be the same bits.
      bool adds = false;
      for (int d = 0; d < v.rank(); ++d) adds = adds || (!lies[d].same(whole[d]) && !n.loops.out[0].contains(n.loops.in[i][d]));
      const sharding made = result_layout(n, 0, c, pending);
      if (adds && (axes & ~(made.used() | made.partial))) continue;
      most = shard_elements(v.dims, whole, e_) * size_of(v.type);
      best = {i, axes, from, made};
    }
    return best;
  }
  /// Whether all that read the result of an einsum may find its sum complete and scattered.
  constexpr bool may_scatter(std::int32_t v) const {
    if (!completed_[std::size_t(v)] || unsaid_ == strictness::strict) return false;
    for (const port& p : g_.outputs)
      if (p.value == v) return false;
    for (const node& n : g_.nodes)
      if (n.kind == op::annotate && n.input(0) == v && g_.at(n.output()).layout.partial) return false;
    return true;
  }
  constexpr loop find_loop(const node& n, const choice& c, const pending_parts& pending) const {
    if (n.kind != op::einsum || n.inputs != 2 || n.loops.blocked) return {};
    if (n.in[0] != n.in[1])
      if (const loop found = operand_loop(n, c, pending); found.travels >= 0) return found;
    const value& v = g_.at(n.output());
    if (!may_loop(v)) return {};
    const sharding made = result_layout(n, 0, c, pending);
    if (!made.partial || v.layout.partial || !is_above(v, made, loop_bytes_) || !may_scatter(n.output())) return {};
    const move_list way = plan_reshard(v, made, v.layout, e_);
    sharding before = v.layout.without(made.partial);
    before.partial = made.partial;
    if (way.count != 1 || way.moves[0].kind != op::reduce_scatter || (v.layout.used() & ~made.used()) != made.partial) return {};
    return before.same_layout(made) ? loop{2, made.partial, -1, v.layout} : loop{};
  }

  constexpr void place(const node& n) {
    serving_ = n.kind;
    place_ = n.place;
    said_ = true;
    if (n.kind == op::annotate) {
      // Brought to the layout that was asked for, it goes on under a second name.
      const sharding& layout = g_.at(n.output()).layout;
      if (layout.partial && cost(n.input(0), layout) < 0) return g_.problem.report(fault::sum_not_pending, "annotate");
      const bool undecided = n.attr.integer[0] != 0 && layout.open && !layout.used();
      const std::int32_t source = undecided ? first_[std::size_t(n.input(0))] : fetch(n.input(0), layout);
      first_[std::size_t(n.output())] = alias(source, n.output());
      return;
    }
    if (g_.loops != 0 && is_of_loop(n.kind)) return place_loop(n);
    if (n.kind == op::reshape && place_rows(n, first_[std::size_t(n.input(0))])) return;
    pending_parts pending = pending_through(n);
    const choice c = choose(n, pending);
    if (const sharding rows = rows_wanted(n); rows.used() && cost(n.input(0), rows) < cost(n, c, pending)) {
      said_ = n.place.gradient || n.place.said || may_move(n.input(0));
      operand_ = 0;
      place_rows(n, fetch(n.input(0), rows));
      return;
    }
    node step = n;
    const loop looped = find_loop(n, c, pending);
    for (int i = 0; i < n.inputs; ++i) {
      operand_ = i;
      if (i == looped.travels) {
        check_not_overwritten(n.input(i));
        step.in[i] = looped.from;
        continue;
      }
      said_ = n.place.gradient || n.place.said || may_move(n.input(i));
      step.in[i] = fetch(n.input(i), operand_of(n, i, c, pending));
    }
    said_ = true;
    if (n.kind == op::reshape) {
      const sharding made = result_layout(n, 0, c, pending);
      said_ = n.place.gradient || n.place.said || may_move(n.input(0));
      operand_ = 0;
      if (const dim_list windows = windows_of_result(n, made); !windows.empty()) return place_merged(n, step, made, windows);
      said_ = true;
    }
    if (looped.travels >= 0) {
      step.kind = op::looped_einsum;
      step.attr.integer[0] = std::int32_t(looped.axes);
      step.attr.integer[1] = looped.travels;
    }
    for (int o = 0; o < n.outputs; ++o)
      step.out[o] = add_version(n.output(o), looped.travels >= 0 ? looped.to : result_layout(n, o, c, pending));
    for (int o = 0; o < n.in_place; ++o) overwritten_[std::size_t(root(n.input(o)))] = 1;
    result_.steps.push_back(step);
  }
  /// A step of a loop itself: what it carries lies in every turn as propagation found, the condition is complete on all devices.
  constexpr void place_loop(const node& n) {
    node step = n;
    if (n.inputs > 0) {
      sharding lies = g_.at(n.kind == op::carry && n.inputs == 1 ? n.output() : n.input(0)).layout;
      lies.partial = 0;
      for (int i = 0; i < n.inputs; ++i) {
        operand_ = i;
        said_ = n.place.said || may_move(n.input(i));
        step.in[i] = fetch(n.input(i), lies);
      }
      if (n.outputs > 0) step.out[0] = add_version(n.output(), lies);
      said_ = true;
    }
    if (n.kind == op::loop_begin) loops_.open(result_.steps.size());
    result_.steps.push_back(step);
    if (n.kind == op::loop_end) loops_.close(result_.steps, result_.values);
    moves_.forget();
  }
  /// A reshape of a dim whose axes cut it, or its first part, into single rows, which further axes cut: each device has part of one row
  /// before and after, and keeps it. Needs the number of rows, or that they count devices. False if that is not so.
  constexpr bool place_rows(const node& n, std::int32_t operand) {
    const int at = n.attr.integer[0], direction = n.attr.integer[1];
    if (direction != 1 && direction != -1) return false;
    const sharding from = version(operand).layout;
    const dim_list& parts = g_.at(direction > 0 ? n.input(0) : n.output()).dims;  // of the side where rows are a dim
    const std::uint32_t counted = devices_counted(parts[at]);
    short_list rows, rest;
    if (direction > 0) {
      rows = from[at];
      rest = from[at + 1];
    } else {
      std::int64_t cuts = 1;
      for (int i = 0; i < from[at].size(); ++i) {
        const bool more = counted ? (counted >> from[at][i]) & 1u : cuts < e_.dim(parts[at]);
        (more && rest.empty() ? rows : rest).push_back(from[at][i]);
        if (rest.empty()) cuts *= e_.axis(from[at][i]);
      }
    }
    if (from.partial || from.order || rows.empty() || rest.empty()) return false;
    const bool known = (rows.mask() & ~e_.known_axes) == 0 && e_.knows_dim(parts[at]) && e_.devices(rows.mask()) == e_.dim(parts[at]);
    if (!known && counted != rows.mask()) return false;
    sharding to = sharding::replicated(g_.at(n.output()).rank());
    for (int d = 0; d < to.rank; ++d) {
      const int source = d <= at ? d : d - at > (direction > 0 ? 0 : 1) ? d + direction : d;
      if (d != at && !(direction < 0 && d == at + 1)) to[d] = from[source];
    }
    to[at] = rows;
    for (int i = 0; i < rest.size(); ++i) to[direction > 0 ? at : at + 1].push_back(rest[i]);
    node step = n;
    step.in[0] = operand;
    step.out[0] = add_version(n.output(), to);
    check_not_overwritten(n.input(0));
    result_.steps.push_back(step);
    return true;
  }
  /// The layout of the operand of a reshape that makes one dim of two, from which place_rows makes the wanted layout: the first axes of the
  /// merged dim shard the rows, one row each; the others shard each row. Shards nothing if there is none.
  constexpr sharding rows_wanted(const node& n) const {
    sharding rows;
    if (n.kind != op::reshape || n.attr.integer[1] != 1) return rows;
    const int at = n.attr.integer[0];
    const sharding& wanted = g_.at(n.output()).layout;
    const int first = g_.at(n.input(0)).dims[at];
    if (wanted.partial || wanted.order || !e_.knows_dim(first) || (wanted[at].mask() & ~e_.known_axes)) return rows;
    std::int64_t pieces = 1;
    int split = 0;
    while (split < wanted[at].size() && pieces < e_.dim(first)) pieces *= e_.axis(wanted[at][split++]);
    if (pieces != e_.dim(first) || split == 0 || split == wanted[at].size()) return rows;
    rows.rank = std::uint8_t(wanted.rank + 1);
    for (int d = 0; d < wanted.rank; ++d)
      if (d != at) rows[d < at ? d : d + 1] = wanted[d];
    for (int i = 0; i < wanted[at].size(); ++i) rows[i < split ? at : at + 1].push_back(wanted[at][i]);
    return rows;
  }
  /// The result of a reshape in which devices hold other blocks than the layout says: brought there at once.
  constexpr void place_merged(const node& n, node step, const sharding& made, const dim_list& windows) {
    std::int32_t& first = first_[std::size_t(n.output())];
    const std::int32_t as_read = step.out[0] = add_version(n.output(), made, windows);
    result_.steps.push_back(step);
    first = -1;  // nobody else takes that version
    exchange(as_read, n.output(), {made, {}});
  }
};

}  // namespace detail

}}  // namespace gshard::v0
