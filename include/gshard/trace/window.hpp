// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Slices, padding, reversal, rotation and concatenation along a dim.
//
// Each element of a result is an element of an operand, or a constant. When the dim is sharded: one exchange of the missing elements (the
// paper's halo exchange, arXiv 2006.16668 section 3.3.2).

#include <gshard/base/list_view.hpp>
#include <gshard/ir/window.hpp>
#include <gshard/trace/builder.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace detail {

/// op::strided_slice, pad, reverse, roll: out[i] = x through the windows, or `fill` where they read nothing.
constexpr symbol emit_moved(op_ref kind, symbol x, const dim_list& dims, const dim_list& windows, double fill = 0, bool inside = false) {
  builder& b = *x.owner;
  if (!b.failed() && !can_hold(x.get().type, fill))
    b.fail_type(name(kind), 0, x.get().type, types_with([&](dtype t) { return can_hold(t, fill); }));
  if (b.failed()) return b.nothing();
  sharding_rule rule;
  rule.in[0] = rule.out[0] = counting(x.rank());
  rule.windows = windows;
  return {&b, b.add_node(kind, {x.id}, rule, {.inside = inside, .fill = fill}, {{dims, x.get().type}})};
}

/// The same if only one dim is read through a window.
constexpr symbol emit_moved(op_ref kind, symbol x, int at, const window& w, double fill = 0, bool inside = false) {
  builder& b = *x.owner;
  dim_list dims = x.get().dims, windows;
  dims.set(at, w.over);
  for (int d = 0; d < x.rank(); ++d) windows.push_back(d == at ? b.row_of(w) : 0);
  return emit_moved(kind, x, dims, windows, fill, inside);
}

/// The windows of the verbs below. `over` is the dim of the result.
constexpr window slice_window(builder& b, std::int64_t start, std::int64_t stop, std::int64_t stride) {
  window w;
  w.over = std::int16_t(b.fixed_dim((stop - start + stride - 1) / stride));
  w.stride = std::int32_t(stride);
  w.low = std::int32_t(start);
  return w;
}
constexpr window pad_window(builder& b, int dim, int low, int high, int interior) {
  window w;
  w.over = std::int16_t(b.linear_dim(dim, 1 + interior, 0, 0, std::int64_t(low) + high - interior));
  w.low = -low;
  w.dilation = 1 + interior;
  return w;
}
constexpr window reverse_window(int dim) {
  window w;
  w.over = w.low_dim = std::int16_t(dim);
  w.stride = -1;
  w.plus_low = 1;
  w.low = -1;
  return w;
}
constexpr window roll_window(int dim, int shift) {
  window w;
  w.over = std::int16_t(dim);
  w.low = -shift;
  w.wrap = true;
  return w;
}

constexpr int dim_of_part(int d) { return d; }
template <class Part>
constexpr int dim_of_part(const Part& part) {
  return part.dim;
}
/// The same with a window for the dim of each part, made by make_window(part, dim of the program). `verb`: its name in faults.
template <class Part, class MakeWindow>
constexpr symbol emit_moved_dims(op_ref kind, std::string_view verb, symbol x, list_view<Part> parts, const MakeWindow& make_window,
                                 double fill = 0, bool inside = false) {
  builder& b = *x.owner;
  if (b.failed()) return b.nothing();
  if (parts.empty()) return x;
  dim_list dims = x.get().dims, windows;
  for (int d = 0; d < x.rank(); ++d) windows.push_back(0);
  for (const Part& part : parts) {
    const int at = dim_of_part(part);
    if (!check_dim(x, at, verb)) return b.nothing();
    if (windows[at] != 0) b.fail_range(verb, "dim", at);
    const window w = make_window(part, dims[at]);
    if (b.failed()) return b.nothing();
    dims.set(at, w.over);
    windows.set(at, b.row_of(w));
  }
  return emit_moved(kind, x, dims, windows, fill, inside);
}

constexpr op_ref opposite(op_ref kind) { return kind == op::pad ? op::strided_slice : kind == op::strided_slice ? op::pad : kind; }

/// The gradient of emit_moved: dy through the inverse windows.
constexpr symbol emit_moved_back(const node& n, symbol x, symbol dy) {
  builder& b = *x.owner;
  dim_list windows;
  for (int d = 0; d < x.rank(); ++d) {
    const int w = n.rule.windows[d];
    windows.push_back(w ? b.row_of(b.program.windows[std::size_t(w)].inverse(x.get().dims[d])) : 0);
  }
  return emit_moved(opposite(n.kind), dy, x.get().dims, windows);
}

}  // namespace detail

/// The elements of one dim that slice keeps.
struct dim_range {
  int dim = 0;
  std::int64_t start = 0, stop = 0, stride = 1;
};

/// slice(x, dim, start, stop, stride)[i] = x[start + stride * i] along one dim, for start + stride * i < stop. slice(x, {{0, 1, 7}, {1, 0,
/// 8, 2}}): several dims at once, each with its start, stop and stride.
/// Shapes: [..., N, ...] -> [..., ceil((stop - start) / stride), ...].
/// Communicates: nothing, or, if a dim is sharded, one exchange of the missing elements.
/// Compile time: that x has the dims; 0 <= start <= stop; stride >= 1; stop <= N where N is known.
/// Throws: `gshard::error` when the program is bound, if stop > N.
/// @see pad, concat
constexpr symbol slice(here x, list_view<dim_range> ranges) {
  builder& b = *x.owner;
  const auto make = [&](const dim_range& r, int dim) {
    constexpr std::int64_t most = std::int64_t(1) << 31;
    const std::int64_t extent = b.known_extent(dim);
    if (r.start < 0 || r.start >= most) b.fail_range("slice", "start", r.start);
    else if (r.stop < r.start) b.fail_range("slice", "start, stop", r.start, r.stop);
    else if (r.stride < 1 || r.stride >= most) b.fail_range("slice", "stride", r.stride);
    else if (extent >= 0 && r.stop > extent) b.fail_range("slice", "stop, extent of x", r.stop, extent);
    return b.failed() ? window{} : detail::slice_window(b, r.start, r.stop, r.stride);
  };
  return detail::emit_moved_dims(op::strided_slice, "slice", x, ranges, make, 0, true);
}
constexpr symbol slice(here x, std::initializer_list<dim_range> ranges) {
  return slice(x, list_view(ranges.begin(), ranges.size()));
}
constexpr symbol slice(here x, int dim, std::int64_t start, std::int64_t stop, std::int64_t stride = 1) {
  return slice(x, {{dim, start, stop, stride}});
}

/// The elements that pad adds along one dim. Negative `low` and `high` remove elements.
struct dim_padding {
  int dim = 0;
  int low = 0, high = 0, interior = 0;
};

/// pad(x, dim, low, high, interior, fill): `low` elements before, `high` after and `interior` between the elements along one dim. Negative
/// `low` and `high` remove elements. pad(x, {{0, 1, 1}, {1, 0, 2}}, fill): several dims at once.
/// Shapes: [..., N, ...] -> [..., low + N + (N - 1) interior + high, ...].
/// Communicates: nothing, or, if a dim is sharded, one exchange of the missing elements.
/// Compile time: that x has the dims; interior >= 0.
/// Throws: `gshard::error` when the program is bound, if more elements are removed than there are.
/// @see slice
constexpr symbol pad(here x, list_view<dim_padding> paddings, double fill = 0) {
  builder& b = *x.owner;
  const auto make = [&](const dim_padding& p, int dim) {
    if (p.interior < 0) b.fail_range("pad", "interior", p.interior);
    return b.failed() ? window{} : detail::pad_window(b, dim, p.low, p.high, p.interior);
  };
  return detail::emit_moved_dims(op::pad, "pad", x, paddings, make, fill);
}
constexpr symbol pad(here x, std::initializer_list<dim_padding> paddings, double fill = 0) {
  return pad(x, list_view(paddings.begin(), paddings.size()), fill);
}
constexpr symbol pad(here x, int dim, int low, int high, int interior = 0, double fill = 0) {
  return pad(x, {{dim, low, high, interior}}, fill);
}

/// reverse(x, dim)[i] = x[N - 1 - i] along one dim of extent N. reverse(x, {0, 1}): several dims at once.
/// Shapes: any -> the same.
/// Communicates: nothing, or, if a dim is sharded, one collective_permute: every block goes to its mirror image.
/// Compile time: that x has the dims.
/// Throws: nothing.
/// @see roll
constexpr symbol reverse(here x, list_view<int> dims) {
  return detail::emit_moved_dims(op::reverse, "reverse", x, dims, [](int, int dim) { return detail::reverse_window(dim); });
}
constexpr symbol reverse(here x, std::initializer_list<int> dims) {
  return reverse(x, list_view(dims.begin(), dims.size()));
}
constexpr symbol reverse(here x, int dim) {
  return reverse(x, list_view(&dim, 1));
}

/// The shift of roll along one dim.
struct dim_shift {
  int dim = 0, shift = 0;
};

/// roll(x, dim, shift)[i] = x[(i - shift) mod N] along one dim of extent N. roll(x, {{0, 1}, {1, -2}}): several dims at once.
/// Shapes: any -> the same.
/// Communicates: nothing, or, if a dim is sharded, the elements that cross borders, in one exchange.
/// Compile time: that x has the dims.
/// Throws: nothing.
/// @see reverse, shift
constexpr symbol roll(here x, list_view<dim_shift> shifts) {
  return detail::emit_moved_dims(op::roll, "roll", x, shifts,
                                 [](const dim_shift& s, int dim) { return detail::roll_window(dim, s.shift); });
}
constexpr symbol roll(here x, std::initializer_list<dim_shift> shifts) {
  return roll(x, list_view(shifts.begin(), shifts.size()));
}
constexpr symbol roll(here x, int dim, int shift) { return roll(x, {{dim, shift}}); }

/// concat({a, b, ...}, dim): the operands one after the other along one dim. At most 7.
/// Shapes: [..., N_i, ...] -> [..., sum of N_i, ...].
/// Communicates: nothing, or, if the dim is sharded, for every operand the elements that blocks of the result lack.
/// Compile time: ranks, dims and element types.
/// Throws: nothing.
/// @see slice, pad
constexpr symbol concat(list_view<symbol> parts, int dim) {
  builder& b = *parts[0].owner;
  if (!detail::check_dim(parts[0], dim, "concat")) return b.nothing();
  if (parts.size() > std::size_t(sharding_rule::most_in))
    b.fail(fault::rank_mismatch, "concat", {}, sharding_rule::most_in, int(parts.size()));
  const value& first = parts[0].get();
  dim_list dims = first.dims;
  for (std::size_t i = 1; i < parts.size() && b.has(parts[i]); ++i) {
    const value& v = parts[i].get();
    if (v.type != first.type) b.fail_type("concat", int(i), v.type, only(first.type));
    else if (v.rank() != first.rank()) b.fail(fault::rank_mismatch, "concat", {}, first.rank(), v.rank());
    else
      for (int d = 0; d < v.rank(); ++d)
        if (d != dim && !b.same_extent(v.dims[d], first.dims[d])) b.fail(fault::dims_differ, "concat", {}, int(i), d);
    if (!b.failed()) dims.set(dim, b.linear_dim(dims[dim], 1, parts[i].get().dims[dim], 1, 0));
  }
  if (b.failed()) return b.nothing();
  sharding_rule rule;
  rule.out[0] = detail::counting(first.rank());
  std::array<std::int32_t, sharding_rule::most_in> ids{};
  int before = -1;  // a dim whose extent is the sum of the operands before this one
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int own = parts[i].get().dims[dim];
    window w;
    w.over = std::int16_t(dims[dim]);
    w.low_dim = std::int16_t(before);
    w.plus_low = -1;
    rule.in[i] = rule.out[0];
    rule.windows.push_back(b.row_of(w));
    ids[i] = parts[i].id;
    before = before < 0 ? own : b.linear_dim(before, 1, own, 1, 0);
  }
  return {&b, b.add_node(op::concat, list_view(ids.data(), parts.size()), rule, {.dim = dim}, {{dims, parts[0].get().type}})};
}
constexpr symbol concat(std::initializer_list<symbol> parts, int dim) { return concat(list_view(parts.begin(), parts.size()), dim); }

}}  // namespace gshard::v0
