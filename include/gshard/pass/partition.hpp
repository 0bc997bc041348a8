// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/list.hpp>
#include <gshard/ir/graph.hpp>
#include <gshard/ir/mesh.hpp>
#include <gshard/pass/cost.hpp>
#include <gshard/pass/reshard.hpp>
#include <gshard/pass/windowed.hpp>

#include <array>
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

class partitioner {
 public:
  constexpr partitioner(graph& g, const mesh_shape& mesh, const extents& e, strictness unsaid = strictness::automatic)
      : g_(g), mesh_(mesh), axes_(mesh.count), e_(e), unsaid_(unsaid), first_(g.values.size(), -1), overwritten_(g.values.size(), 0),
        completed_(g.values.size(), 0), stays_(g.values.size(), 0) {}

  constexpr partitioned run(bool keep_pending_outputs) {
    for (const parameter& p : g_.parameters) enter(p.value);
    for (const port& p : g_.inputs) enter(p.value);
    want_annotated();
    const list<char> live = live_nodes();
    find_completed(live, keep_pending_outputs);
    result_.steps.reserve(2 * g_.nodes.size());  // so that few rows move, which the evaluator pays for
    result_.values.reserve(2 * g_.values.size());
    for (std::size_t i = 0; i < g_.nodes.size() && !g_.problem; ++i)
      if (live[i]) place(g_.nodes[i]);
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
      result_.outputs.push_back({p.name, fetch(p.value, layout)});
    }
    return static_cast<partitioned&&>(result_);
  }

 private:
  graph& g_;
  const mesh_shape& mesh_;
  int axes_;
  const extents& e_;
  strictness unsaid_;
  list<std::int32_t> first_;  // by value of the graph: its first version, a value of the plan
  list<std::int32_t> next_;   // by value of the plan: the next version of the same tensor
  list<char> overwritten_;    // by value of the graph: a node before wrote over it
  list<char> completed_;      // by value of the graph: somebody needs its sum
  list<char> stays_;          // by value of the graph: an output that may be pending, and nobody else has it
  partitioned result_;
  // The node that is placed, its operand that is fetched, and whether the program says that this may move.
  op serving_ = op::annotate;
  code_place place_;
  int operand_ = 0;
  bool said_ = true;

  static constexpr int factors = short_list::largest + 1;
  /// Axes by factor.
  struct cut_table {
    short_list by_factor[factors]{};
    constexpr short_list& operator[](int f) { return by_factor[f]; }
    constexpr const short_list& operator[](int f) const { return by_factor[f]; }
  };

  /// A way to share the work of a node: the factor that each axis cuts (or -1: none), and the axes of each factor.
  struct choice {
    int factor_of[max_axes]{-1, -1, -1, -1, -1, -1, -1, -1};
    cut_table cuts{};
  };

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
    }
    return live;
  }

  /// Pending sums run through these.
  static constexpr bool is_linear(const node& n) {
    return n.kind == op::scale || n.kind == op::reshape || (n.kind == op::einsum && n.inputs == 1) ||
           (n.kind == op::map && n.attr.function->linear);
  }
  /// What is used by an annotation alone is wanted as that says.
  constexpr void want_annotated() {
    list<std::int32_t> uses(g_.values.size(), 0);
    bool any = false;
    for (const node& n : g_.nodes) {
      any = any || n.kind == op::annotate;
      for (int i = 0; i < n.inputs; ++i) ++uses.data()[n.in[i]];
    }
    if (!any) return;
    for (const port& p : g_.outputs) ++uses[std::size_t(p.value)];
    for (const parameter& p : g_.parameters)
      if (p.updated >= 0) ++uses[std::size_t(p.updated)];
    for (std::size_t i = g_.nodes.size(); i-- > 0;) {
      const node& n = g_.nodes[i];
      if (n.kind != op::annotate || n.attr.integer[0] != 0) continue;
      value& source = g_.at(n.input(0));
      if (source.producer < 0 || uses[std::size_t(n.input(0))] != 1) continue;
      const node& maker = g_.nodes[std::size_t(source.producer)];
      if (maker.kind != op::annotate && !lies_as_made(maker)) source.layout = g_.at(n.output()).layout;
    }
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

  /// What it costs to have tensor `of` in this layout, from the version that is cheapest to start from.
  constexpr std::int64_t cost(std::int32_t of, const sharding& layout, std::int32_t* from = nullptr) const {
    std::int64_t best = -1;
    const value* const versions = result_.values.data();
    for (std::int32_t v = first_[std::size_t(of)]; v >= 0; v = next_[std::size_t(v)]) {
      const sharding& s = versions[v].layout;
      if ((layout.partial & ~s.partial) || versions[v].windows.count > 0) continue;
      const std::int64_t c = s.same_layout(layout) ? 0 : 1 + plan_reshard(versions[v], s, layout, e_).cost();
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
  constexpr std::int32_t add_move(op kind, std::uint32_t axes, std::int32_t from, std::int32_t to) {
    node n;
    n.kind = kind;
    n.inputs = n.outputs = 1;
    n.in[0] = from;
    n.out[0] = to;
    n.attr.integer[0] = std::int32_t(axes);
    n.place = place_;
    if (unsaid_ != strictness::automatic) check_said(n);
    result_.steps.push_back(n);
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
      now = add_move(m.kind, m.axes, from, add_version(of, m.to));
    }
    return now;
  }

  /// Of a move to or from what windows read.
  constexpr std::int64_t exchange_cost(const value& from, const value& to) const {
    const std::int64_t bytes = bytes_lacking(from, to, g_.windows, e_);
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
    bool has_all = true;
    for (int d = 0; d < before.rank(); ++d) {
      const bool plain = before.windows.empty() && (after.windows.empty() || after.windows[d] == 0);
      has_all = has_all && (before.layout[d].empty() || (plain && before.layout[d].is_prefix_of(after.layout[d])));
    }
    const op kind = has_all ? op::slice : before.layout.same_layout(after.layout) ? op::collective_permute : op::all_to_all;
    const std::uint32_t axes = moving_axes(before.layout, after.layout) | axes_of_windows(before) | axes_of_windows(after);
    return add_move(kind, axes, from, to);
  }

  /// Parts of operands, and so of a result, that are still to be combined, over the axes of a mask: of all operands together, or of a
  /// product each of one.
  struct pending_parts {
    std::uint8_t axes = 0;
    reduction what = reduction::sum;
    bool product = false;
    std::uint8_t second = 0;  // of a product: the axes of its second operand

    constexpr pending_parts of(int i) const {
      return product ? pending_parts{std::uint8_t(i == 0 ? axes & ~second : second), what} : *this;
    }
  };

  /// The layout in which a node with these cuts takes or leaves a tensor.
  static constexpr sharding layout_of(const short_list& dims, const cut_table& cuts, const pending_parts& pending) {
    sharding s;
    s.rank = dims.count;
    for (int d = 0; d < dims.count; ++d)
      if (const short_list& axes = cuts.by_factor[dims[d]]; axes.count > 0) s.axes[d] = axes;
    s.partial = pending.axes;
    s.pending = pending.what;
    return s;
  }
  constexpr held_as operand_of(const node& n, int i, const choice& c, const pending_parts& pending) const {
    const short_list& loops = n.loops.in[i];
    held_as h{layout_of(loops, c.cuts, pending.of(i)), {}};
    if (n.loops.windows.empty()) return h;
    const dim_list& dims = g_.at(n.input(i)).dims;
    bool any = false;
    for (int d = 0; d < loops.size(); ++d) {
      const int w = h.layout[d].empty() ? 0 : window_of(n, i, d);
      const bool needed = w && !reads_its_block(g_.windows[std::size_t(w)], dims[d], h.layout[d], e_);
      h.windows.push_back(needed ? w : 0);
      any = any || needed;
    }
    if (!any) h.windows = {};
    return h;
  }
  constexpr std::int64_t operand_cost(const node& n, int i, const choice& c, const pending_parts& pending) const {
    const held_as h = operand_of(n, i, c, pending);
    std::int32_t from = -1;
    return h.windows.empty() ? cost(n.input(i), h.layout) : cost(n.input(i), h, from);
  }
  /// Two dims that become one, the first of them cut: a device then has what its block of the first reads of the result.
  constexpr dim_list windows_of_result(const node& n, const sharding& made) const {
    dim_list windows;
    if (n.kind != op::reshape || n.attr.integer[1] != 1) return windows;
    const int at = n.attr.integer[0], w = n.attr.integer[2];
    if (made[at].empty() || reads_its_block(g_.windows[std::size_t(w)], g_.at(n.output()).dims[at], made[at], e_)) return windows;
    for (int d = 0; d < made.rank; ++d) windows.push_back(d == at ? w : 0);
    return windows;
  }
  /// An axis that cuts a factor which the result lacks leaves a pending sum over it.
  constexpr sharding result_layout(const node& n, int o, const choice& c, const pending_parts& pending) const {
    const short_list& dims = n.loops.out[o];
    sharding s = layout_of(dims, c.cuts, pending);
    for (int a = 0; a < axes_; ++a)
      if (c.factor_of[a] >= 0 && !dims.contains(c.factor_of[a])) s.partial = std::uint8_t(s.partial | (1u << a));
    if (s.partial != pending.axes) s.pending = n.kind == op::reduce ? reduction(n.attr.integer[0]) : n.kind == op::argmax ? reduction::min : reduction::sum;
    return s;
  }

  /// Pending sums that run through a node: it is linear in all its operands together, they all have the same, and nobody needs one
  /// of them complete anyway.
  constexpr pending_parts pending_through(const node& n) const {
    if (!is_linear(n)) return {};
    for (int i = 0; i < n.inputs; ++i)
      if (completed_[std::size_t(n.input(i))]) return {};
    const sharding& first = version(first_[std::size_t(n.input(0))]).layout;
    for (int i = 1; i < n.inputs; ++i)
      if (version(first_[std::size_t(n.in[i])]).layout.partial != first.partial) return {};
    if (first.partial == 0 || (first.pending != reduction::sum && n.kind != op::reshape)) return {};
    return {first.partial, first.pending};
  }

  /// The factors that `axis` cuts in some version of an operand or in the layout wanted for a result, a bit each.
  constexpr std::uint32_t candidates(const node& n, int axis) const {
    std::uint32_t found = 0;
    const auto look = [&](const sharding& s, const short_list& dims) {
      const int d = s.dim_of(axis);
      if (d >= 0 && !n.loops.is_blocked(dims[d])) found |= 1u << dims[d];
    };
    for (int i = 0; i < n.inputs; ++i)
      for (std::int32_t v = first_[std::size_t(n.in[i])]; v >= 0; v = next_[std::size_t(v)])
        look(version(v).layout, n.loops.in[i]);
    const bool idle = found == 0;
    for (int o = 0; o < n.outputs; ++o) look(g_.at(n.output(o)).layout, n.loops.out[o]);
    if (idle && found) found |= with_others(n, axis);
    return found ? found : elsewhere(n, axis);
  }
  /// An axis that no operand has may first cut what those cut with which it shall cut a dim of the result: they then move together.
  constexpr std::uint32_t with_others(const node& n, int axis) const {
    std::uint32_t found = 0;
    for (int o = 0; o < n.outputs; ++o) {
      const sharding& wanted = g_.at(n.output(o)).layout;
      const int d = wanted.dim_of(axis);
      for (int k = 0; d >= 0 && k < wanted[d].size(); ++k)
        for (int i = 0; i < n.inputs; ++i) {
          const int at = version(first_[std::size_t(n.in[i])]).layout.dim_of(wanted[d][k]);
          const short_list& dims = n.loops.in[i];
          if (at >= 0 && !n.loops.is_blocked(dims[at])) found |= 1u << dims[at];
        }
    }
    return found;
  }
  /// An axis that cuts only dims that this node needs whole may cut others meanwhile, which is less than gathering them.
  constexpr std::uint32_t elsewhere(const node& n, int axis) const {
    std::uint32_t found = 0;
    if (!n.loops.blocked || n.outputs == 0) return found;
    for (int i = 0; i < n.inputs; ++i) {
      const sharding& s = version(first_[std::size_t(n.input(i))]).layout;
      if (s.dim_of(axis) < 0) continue;
      const short_list &in = n.loops.in[i], &out = n.loops.out[0];
      for (int d = 0; d < in.size(); ++d)
        if (!n.loops.is_blocked(in[d]) && out.contains(in[d])) found |= 1u << in[d];
    }
    return found;
  }

  /// Cuts every axis's factor; axes that share one stand in the order in which some operand or result already has them.
  constexpr void cut(choice& c, const node& n) const {
    c.cuts = {};
    bool shared = false;
    for (int a = 0; a < axes_; ++a) {
      const int f = c.factor_of[a];
      if (f < 0) continue;
      c.cuts[f].push_back(a);
      shared = shared || c.cuts[f].count > 1;
    }
    if (!shared) return;
    for (int f = 0; f < factors; ++f) {
      short_list& axes = c.cuts[f];
      if (axes.size() < 2) continue;
      const auto adopt = [&](const sharding& s, const short_list& dims) {
        const int d = dims.find(f);
        if (d >= 0 && s[d].size() == axes.size() && s[d].mask() == axes.mask()) axes = s[d];
      };
      for (int o = 0; o < n.outputs; ++o) adopt(g_.at(n.output(o)).layout, n.loops.out[o]);
      for (int i = 0; i < n.inputs; ++i) adopt(version(first_[std::size_t(n.in[i])]).layout, n.loops.in[i]);
    }
  }

  /// Dims that nobody has decided on may lie as they are made: what was sorted stays where its lines could be whole.
  static constexpr void refine(sharding& wanted, std::uint8_t open, const sharding& made) {
    if (!open) return;
    std::uint32_t used = wanted.used();
    for (int d = 0; d < wanted.rank; ++d) {
      if (!((open >> d) & 1u) || made[d].count <= wanted[d].count || !wanted[d].is_prefix_of(made[d])) continue;
      if (made[d].mask() & used & ~wanted[d].mask()) continue;
      wanted[d] = made[d];
      used |= made[d].mask();
    }
  }

  /// More than any bytes: for ways that do not leave a sum pending that is wanted pending.
  static constexpr std::int64_t unwanted = std::int64_t(1) << 60;

  /// Bytes to bring the operands to these cuts and the results to the layouts that propagation wants. Work that an axis repeats on
  /// all its devices instead of sharing it counts like sending its results.
  constexpr std::int64_t cost(const node& n, const choice& c, const pending_parts& pending) const {
    std::int64_t total = 0;
    for (int i = 0; i < n.inputs; ++i) total += operand_cost(n, i, c, pending);
    bool repeats = false;
    for (int a = 0; a < axes_; ++a) repeats = repeats || c.factor_of[a] < 0;
    for (int o = 0; o < n.outputs; ++o) {
      const value& v = g_.at(n.output(o));
      const sharding made = result_layout(n, o, c, pending);
      sharding wanted = v.layout;
      if (wanted.partial & ~made.partial) total += unwanted;
      const std::uint32_t pending_fits = stays_[std::size_t(n.output(o))] ? ~wanted.used() : wanted.partial;
      wanted.partial = std::uint8_t(pending_fits & made.partial);
      wanted.pending = made.pending;
      if (n.kind == op::sort) refine(wanted, v.layout.open, made);
      if (const dim_list windows = windows_of_result(n, made); !windows.empty()) {
        value before = v, after = v;
        before.layout = after.layout = made;
        before.windows = windows;
        total += exchange_cost(before, after);
      }
      if (!made.same_layout(wanted)) total += 1 + plan_reshard(v, made, wanted, e_).cost();
      if (repeats) total += shard_elements(v.dims, made, e_) * size_of(v.type);
    }
    return total;
  }

  /// Whether what a node computes is about the blocks of its result's layout.
  constexpr bool lies_as_made(const node& n) const {
    if (n.kind == op::block_sum || (n.kind == op::cumsum && n.inputs > 1)) return true;
    return n.kind == op::top_k && g_.dims[std::size_t(g_.at(n.output()).dims[n.attr.integer[0]])].what == dim::kind::blocks;
  }
  constexpr choice as_result(const node& n) const {
    choice c;
    const sharding& s = g_.at(n.output()).layout;
    for (int d = 0; d < s.rank; ++d) {
      const int f = n.loops.out[0][d];
      c.cuts.by_factor[f] = s[d];
      for (int i = 0; i < s[d].size(); ++i) c.factor_of[s[d][i]] = f;
    }
    return c;
  }

  /// The cheapest factor for every axis.
  constexpr choice choose(const node& n, const pending_parts& pending, std::int64_t& lowest) const {
    choice c, best;
    std::array<std::uint32_t, max_axes> options{};
    bool any = false;
    for (int a = 0; a < axes_; ++a) {
      options[std::size_t(a)] = (pending.axes >> a) & 1u ? 0u : candidates(n, a);
      any = any || options[std::size_t(a)] != 0;
    }
    if (any) try_axis(n, pending, options, 0, c, best, lowest);
    return best;
  }
  /// The same, where sums that are pending on an operand of a product may also stay pending, over an axis on one of them: what is cheapest.
  constexpr choice choose(const node& n, pending_parts& pending) const {
    if (lies_as_made(n)) return as_result(n);
    std::int64_t lowest = -1;
    choice best = choose(n, pending, lowest);
    if (n.kind != op::einsum || n.inputs != 2 || lowest == 0 || n.in[0] == n.in[1]) return best;
    const std::uint8_t a = pending_sums(n.in[0]), b = pending_sums(n.in[1]);
    if (!a && !b) return best;
    if (lowest < 0) lowest = cost(n, best, pending);
    const std::uint8_t ways[][2] = {{a, 0}, {0, b}, {std::uint8_t(a & ~b), b}, {a, std::uint8_t(b & ~a)}};
    for (const auto& [first, second] : ways) {
      const pending_parts kept{std::uint8_t(first | second), reduction::sum, true, second};
      std::int64_t other = -1;
      const choice c = choose(n, kept, other);
      if (other < 0) other = cost(n, c, kept);
      if (other >= lowest) continue;
      lowest = other;
      best = c;
      pending = kept;
    }
    return best;
  }
  constexpr std::uint8_t pending_sums(std::int32_t v) const {
    const sharding& s = version(first_[std::size_t(v)]).layout;
    return s.pending == reduction::sum ? s.partial : std::uint8_t(0);
  }
  /// Tries every factor (and none) for axis a and those after it.
  constexpr void try_axis(const node& n, const pending_parts& pending, const std::array<std::uint32_t, max_axes>& options, int a, choice& c,
                          choice& best, std::int64_t& lowest) const {
    if (a == axes_) {
      cut(c, n);
      const std::int64_t bytes = cost(n, c, pending);
      if (lowest < 0 || bytes < lowest) {
        lowest = bytes;
        best = c;
      }
      return;
    }
    std::uint32_t left = options[std::size_t(a)];
    for (int f = 0; left != 0 && lowest != 0; ++f, left >>= 1) {
      if (!(left & 1u)) continue;
      c.factor_of[a] = f;
      try_axis(n, pending, options, a + 1, c, best, lowest);
    }
    c.factor_of[a] = -1;
    if (lowest != 0) try_axis(n, pending, options, a + 1, c, best, lowest);
  }

  constexpr void place(const node& n) {
    serving_ = n.kind;
    place_ = n.place;
    said_ = true;
    if (n.kind == op::annotate) {
      // Brought to the layout that was asked for, it goes on under a second name.
      const sharding& layout = g_.at(n.output()).layout;
      if (layout.partial && cost(n.input(0), layout) < 0) return g_.problem.report(fault::sum_not_pending, "annotate");
      const std::int32_t source = fetch(n.input(0), layout);
      first_[std::size_t(n.output())] = alias(source, n.output());
      return;
    }
    pending_parts pending = pending_through(n);
    const choice c = choose(n, pending);
    node step = n;
    for (int i = 0; i < n.inputs; ++i) {
      operand_ = i;
      said_ = n.place.gradient || may_move(n.input(i));
      step.in[i] = fetch(n.input(i), operand_of(n, i, c, pending));
    }
    said_ = true;
    if (n.kind == op::reshape) {
      const sharding made = result_layout(n, 0, c, pending);
      if (const dim_list windows = windows_of_result(n, made); !windows.empty()) return place_merged(n, step, made, windows);
    }
    for (int o = 0; o < n.outputs; ++o) step.out[o] = add_version(n.output(o), result_layout(n, o, c, pending));
    for (int o = 0; o < n.in_place; ++o) overwritten_[std::size_t(root(n.input(o)))] = 1;
    result_.steps.push_back(step);
  }
  /// The result of a reshape in which devices hold other blocks than the layout says: brought there at once.
  constexpr void place_merged(const node& n, node step, const sharding& made, const dim_list& windows) {
    std::int32_t& first = first_[std::size_t(n.output())];
    const std::int32_t as_read = step.out[0] = add_version(n.output(), made, windows);
    result_.steps.push_back(step);
    first = -1;  // nobody else takes that version
    exchange(as_read, n.output(), {made, {}});
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
