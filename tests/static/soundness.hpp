// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/core/plan/plan.hpp>
#include <gshard/core/reshard/halo.hpp>
#include <gshard/core/reshard/reshard.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/random/dropout.hpp>
#include <gshard/ops/window/moved.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

// Properties of every plan, for any program and mesh.
namespace soundness {

namespace gs = gshard;
namespace op = gs::op;

/// True if a move of this kind over these axes may change one layout into the other.
constexpr bool is_legal_move(gs::op_ref kind, std::uint32_t axes, const gs::sharding& from, const gs::sharding& to) {
  bool finer = true, coarser = true;
  for (int d = 0; d < from.rank; ++d) {
    finer = finer && from[d].is_prefix_of(to[d]);
    coarser = coarser && to[d].is_prefix_of(from[d]);
  }
  const std::uint32_t completed = from.partial & ~std::uint32_t(to.partial), cut = to.used() & ~from.used();
  if (axes == 0 || from.rank != to.rank || (to.partial & ~from.partial)) return false;
  if (from.order | to.order)  // moves that change the order use all axes
    return !completed && !to.partial && (kind != op::slice || (finer && (from.order == to.order || !from.used()))) &&
           (kind != op::all_gather || coarser);
  switch (kind->id) {
    case op::slice.id: return finer && !completed && cut == axes;
    case op::all_gather.id: return coarser && !completed && axes == (from.used() & ~to.used());
    case op::all_reduce.id: return finer && coarser && completed == axes;
    case op::reduce_scatter.id: return finer && completed == axes && !(axes & ~cut);
    case op::all_to_all.id:
    case op::ragged_all_to_all.id:
    case op::collective_permute.id: return !completed && axes == gs::moving_axes(from, to);
    default: return false;
  }
}

/// True if a move takes a tensor from the layout of its operand to the layout of its result.
constexpr bool moves_right(const gs::plan_view& p, const gs::node& s, int i) {
  const gs::value &from = p.at(s.input(i)), &to = p.at(s.output(i)), &first = p.at(s.input(0));
  const bool sums = s.kind == op::all_reduce || s.kind == op::reduce_scatter;
  if ((gs::size_of(from.type) != gs::size_of(first.type) && s.kind != op::ragged_all_to_all) ||
      (sums && (from.type != first.type || from.layout.pending != first.layout.pending)))
    return false;
  if (!from.windows.empty() || !to.windows.empty())  // from blocks to the elements that windows read, or back
    return from.dims == to.dims && from.type == to.type && from.layout.partial == to.layout.partial && s.kind != op::all_reduce &&
           s.kind != op::reduce_scatter && gs::detail::axes_of_move(from, to) == s.attr.axes;
  return from.dims == to.dims && from.type == to.type &&
         is_legal_move(s.kind, s.attr.axes, from.layout, to.layout);
}
/// True if the counts of rows in a ragged exchange are sharded like the rows, before and after it.
constexpr bool counts_lie_right(const gs::value& rows, const gs::value& counts) {
  if (counts.type != gs::dtype::i32 || counts.rank() != 3 || counts.layout.partial || !counts.layout[2].empty()) return false;
  for (int d = 0; d < 2; ++d)
    if (counts.dims[d] != rows.dims[d] || counts.layout[d] != rows.layout[d]) return false;
  return true;
}
constexpr bool moves_right(const gs::plan_view& p, const gs::node& s) {
  if (s.kind == op::ragged_all_to_all && (s.inputs != 2 || !counts_lie_right(p.at(s.input(0)), p.at(s.input(1))) ||
                                          !counts_lie_right(p.at(s.output(0)), p.at(s.output(1)))))
    return false;
  for (int i = 0; i < s.inputs; ++i)
    if (!moves_right(p, s, i)) return false;
  return s.inputs == s.outputs && s.inputs > 0;
}

/// The factors of a step's operand. A dim that is read through a window and sharded like the taps has the factor of the taps.
constexpr gs::short_list read_factors(const gs::plan_view& p, const gs::node& s, int operand) {
  gs::short_list factors = s.rule.in[std::size_t(operand)];
  const auto cut = [&](int factor) {
    if (const int d = s.rule.out[0].find(factor); d >= 0) return p.at(s.output()).layout[d];
    return p.at(s.input(1)).layout[s.rule.in[1].find(factor)];
  };
  for (int d = 0; d < factors.size(); ++d)
    if (const int tap = gs::tap_factor(s, operand, d); tap >= 0 && p.at(s.input(operand)).layout[d] != cut(factors[d])) factors.set(d, tap);
  return factors;
}

/// True if each factor of a step has one list of axes on all operands and results. Blocked factors are whole, and no axis shards two
/// factors. Partial sums enter only linear operations, and leave only contractions.
constexpr bool lies_right(const gs::plan_view& p, const gs::node& s) {
  // The ring operand of a looped einsum has the sharding before a gather, or after a reduce_scatter.
  const bool looped = s.kind == op::looped_einsum;
  const auto over = s.attr.axes;
  const auto held = [&](std::int32_t v) {
    gs::value t = p.at(v);
    if (!looped || v != gs::ring_operand(s)) return t;
    t.layout = t.layout.without(over);
    if (gs::ring_carries_sum(s)) t.layout.partial = std::uint8_t(t.layout.partial | over);
    return t;
  };
  if (looped && (over == 0 || (p.at(gs::ring_operand(s)).layout.used() & over) != over)) return false;
  std::array<gs::short_list, 16> cut{};
  std::array<bool, 16> known{};
  std::uint32_t used = 0, pending = 0;
  const auto agrees = [&](const gs::value& v, const gs::short_list& factors) {
    if (v.layout.order) return false;  // operations are computed in the mesh's order
    for (int d = 0; d < v.rank(); ++d) {
      const auto f = std::size_t(factors[d]);
      if (known[f]) {
        if (cut[f] != v.layout[d]) return false;
        continue;
      }
      known[f] = true;
      cut[f] = v.layout[d];
      const std::uint32_t axes = cut[f].empty() ? 0u : cut[f].mask();
      if ((used & axes) || (axes && s.rule.is_blocked(factors[d]))) return false;
      used |= axes;
    }
    return v.rank() == factors.size();
  };
  for (int i = 0; i < s.inputs; ++i) {
    if (!agrees(held(s.input(i)), read_factors(p, s, i))) return false;
    pending |= p.at(s.input(i)).layout.partial;
  }
  // A product keeps the partial sum of one operand over an axis. This includes gather and scatter_add, as products with one-hot rows. With
  // both operands partial over an axis, it would multiply different addends. A quotient keeps the partial sum of its dividend.
  const auto is = [&](int number) { return s.kind == op::map && s.attr.function->own == number; };
  const bool multiplies = is(gs::detail::arithmetic::number_of<gs::detail::arithmetic::multiply>),
             divides = is(gs::detail::arithmetic::number_of<gs::detail::arithmetic::divide>) && !p.at(s.input(1)).layout.partial;
  const bool product =
      (looped || s.kind == op::einsum || s.kind == op::gather || s.kind == op::scatter_add || multiplies || divides) && s.inputs == 2 &&
      !(p.at(s.input(0)).layout.partial & p.at(s.input(1)).layout.partial);
  const bool moves = (s.kind == op::strided_slice || s.kind == op::pad || s.kind == op::reverse || s.kind == op::roll ||
                      s.kind == op::permute || s.kind == op::dropout) && s.attr.fill == 0;
  const bool linear = s.kind == op::scale || s.kind == op::reshape || moves ||
                      (s.kind == op::einsum && s.inputs == 1) ||
                      (s.kind == op::map && s.attr.function->linear);
  for (int i = 0; i < s.inputs; ++i)
    if (pending && !product && (!linear || p.at(s.input(i)).layout.partial != pending)) return false;
  if (pending & used) return false;
  std::uint32_t summed = pending;
  for (int o = 0; o < s.outputs; ++o)
    if (!agrees(held(s.output(o)), s.rule.out[std::size_t(o)])) return false;
  for (int o = 0; o < s.outputs; ++o) {
    summed = pending;
    for (int f = 0; f < 16; ++f)
      if (known[std::size_t(f)] && !cut[std::size_t(f)].empty() && !s.rule.out[std::size_t(o)].contains(f))
        summed |= cut[std::size_t(f)].mask();
    if (held(s.output(o)).layout.partial != summed) return false;
  }
  return true;
}

/// True for legal layouts: no axis twice, no open dims, no axis that both shards and is partial.
constexpr bool is_legal(const gs::sharding& s) {
  if (s.order && (s.partial || !s.used())) return false;
  std::uint32_t seen = s.partial;
  for (int d = 0; d < s.rank; ++d)
    for (int i = 0; i < s[d].size(); ++i) {
      if ((seen >> s[d][i]) & 1u) return false;
      seen |= 1u << s[d][i];
    }
  return s.open == 0;
}

/// True for a reshape of a dim that its first axes shard into single rows: the other axes shard the rows, before and after.
constexpr bool keeps_rows(const gs::plan_view& p, const gs::node& s) {
  if (s.kind != op::reshape || (s.attr.change != gs::reshape_kind::merge && s.attr.change != gs::reshape_kind::split)) return false;
  const bool merges = s.attr.change == gs::reshape_kind::merge;
  const gs::sharding &apart = p.at(merges ? s.input(0) : s.output()).layout, &whole = p.at(merges ? s.output() : s.input(0)).layout;
  const int at = s.attr.dim;
  gs::sharding joined = whole;
  joined[at] = apart[at];
  for (int i = 0; i < apart[at + 1].size(); ++i) joined[at].push_back(apart[at + 1][i]);
  for (int d = 0; d < whole.rank; ++d)
    if (d != at) joined[d] = apart[d + (d > at)];
  return joined == whole && !whole.partial && !apart.partial;
}

constexpr bool is_sound(const gs::plan_view& p) {
  std::vector<char> made(p.values.size(), 0);
  std::vector<std::int32_t> holds(p.values.size(),
                                  -1);  // by storage: the last value that overwrote another one
  for (const gs::port& q : p.inputs) made[std::size_t(q.value)] = 1;
  for (const gs::parameter& q : p.parameters) made[std::size_t(q.value)] = 1;
  const auto storage = [&](std::int32_t v) -> std::int32_t& {
    return holds[std::size_t(p.lifetimes[std::size_t(v)].root)];
  };
  const auto can_be_read = [&](std::int32_t v) {
    return made[std::size_t(v)] && (storage(v) < 0 || storage(v) == v);
  };
  for (const gs::value& v : p.values)
    if (!is_legal(v.layout) || v.layout.rank != v.rank()) return false;
  for (const gs::node& s : p.steps) {
    for (int i = 0; i < s.inputs; ++i)
      if (!can_be_read(s.input(i))) return false;
    for (int o = 0; o < s.in_place; ++o) storage(s.output(o)) = s.output(o);
    for (int o = 0; o < s.outputs; ++o) {
      if (made[std::size_t(s.output(o))]) return false;
      made[std::size_t(s.output(o))] = 1;
    }
    const bool moves = (gs::traits(s.kind).collective && s.kind != op::looped_einsum) || s.kind == op::slice;
    if (s.kind != op::annotate && !(moves ? moves_right(p, s) : lies_right(p, s) || keeps_rows(p, s))) return false;
  }
  for (const gs::port& q : p.outputs)
    if (!can_be_read(q.value)) return false;
  for (const gs::parameter& q : p.parameters)
    if (q.updated >= 0 &&
        (!can_be_read(q.updated) || !p.at(q.updated).layout.same_layout(p.at(q.value).layout)))
      return false;
  return true;
}

/// True if nothing is sent twice. Counts of rows are an exception: they are sent with each of them.
constexpr bool sends_once(const gs::plan_view& p) {
  struct sent {
    const gs::node* step;
    std::int32_t from, to;
  };
  std::vector<sent> all;
  for (const gs::node& s : p.steps)
    for (int i = 0; gs::traits(s.kind).collective && i < (gs::traits(s.kind).ragged ? 1 : s.outputs); ++i)
      all.push_back({&s, s.input(i), s.output(i)});
  for (const sent& a : all)
    for (const sent& b : all) {
      if (&a == &b) break;
      const gs::value &x = p.at(a.to), &y = p.at(b.to);
      if (a.step->kind == b.step->kind && a.from == b.from && a.step->attr.axes == b.step->attr.axes &&
          a.step->attr.moves == b.step->attr.moves && x.layout.same_layout(y.layout) && x.windows == y.windows)
        return false;
    }
  return true;
}

}  // namespace soundness
