// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Pooling: sum_pool, mean_pool, max_pool and min_pool.

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/grad/differentiator.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/ir/reduction.hpp>
#include <gshard/core/ir/window.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/ops/window/convolution.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation pool{.id = 35, .name = "pool", .windowed = 1};
inline constexpr operation pool_grad{.id = 36, .name = "pool_grad", .windowed = 2};
}  // namespace op

/// A window over one dim of a pooled tensor.
struct pool_window {
  int dim = 0, taps = 1;
  conv_window how = {};
};

namespace detail {

constexpr void pool_gradient(differentiator& d, const node& n);
inline constexpr operation_rules pool_rules{.of = op::pool, .gradient = pool_gradient};

struct pool_parts {
  dim_list dims, windows, taps;
  int count = 1;
};

constexpr pool_parts pooled(symbol x, list_view<pool_window> over, std::string_view operation) {
  builder& b = *x.owner;
  pool_parts p;
  if (b.failed()) return p;
  p.dims = x.get().dims;
  for (int d = 0; d < x.rank(); ++d) {
    p.windows.push_back(0);
    p.taps.push_back(0);
  }
  int factor = x.rank();
  for (const pool_window& w : over) {
    if (!check_dim(x, w.dim, operation) || !check_window(b, operation, w.how)) return p;
    if (w.taps < 1) b.fail_range(operation, ".taps", w.taps);
    if (p.windows[w.dim] != 0) b.fail_range(operation, ".dim", w.dim);
    if (b.failed()) return p;
    window in;
    in.taps_dim = std::int16_t(b.fixed_dim(w.taps));
    in.over = std::int16_t(positions_dim(b, x.get().dims[w.dim], in.taps_dim, w.how));
    in.stride = w.how.stride;
    in.low = -w.how.low;
    in.step = w.how.step;
    in.dilation = w.how.dilation;
    p.dims.set(w.dim, in.over);
    p.windows.set(w.dim, b.row_of(in));
    p.taps.set(w.dim, ++factor);
    p.count *= w.taps;
  }
  return p;
}

/// op::pool: the largest (or smallest) element of each window, and the index of its tap.
constexpr symbol emit_pool(symbol x, reduction what, list_view<pool_window> over, std::string_view operation) {
  builder& b = *x.owner;
  if (!require_real(b, operation, {x})) return b.nothing();
  const pool_parts p = pooled(x, over, operation);
  if (b.failed()) return b.nothing();
  sharding_rule rule;
  rule.in[0] = rule.out[0] = rule.out[1] = counting(x.rank());
  rule.windows = p.windows;
  return {&b, b.add_node(b.use(pool_rules), {x.id}, rule, {.combine = what}, {{p.dims, x.get().type}, {p.dims, dtype::i32}})};
}

/// The gradient of each result goes to the tap that it took.
constexpr void pool_gradient(differentiator& d, const node& n) {
  builder& b = d.owner();
  const symbol x = d.in(n, 0), dy = d.gradient(n);
  sharding_rule rule;
  rule.in[0] = rule.in[1] = rule.out[0] = counting(x.rank());
  for (int k = 0; k < x.rank(); ++k) {
    const int w = n.rule.windows[k];
    rule.windows.push_back(w ? b.row_of(b.program.windows[std::size_t(w)].inverse(x.get().dims[k])) : 0);
  }
  d.add(n.input(0), {&b, b.add_node(op::pool_grad, {n.output(1), dy.id}, rule, n.attr, {{x.get().dims, dy.get().type}})});
}

}  // namespace detail

/// sum_pool(x, {{2, 3}, {3, 3}}): the sum over the taps of windows, here of 3 taps along dims 2 and 3. Padding is zero.
/// Shapes: every windowed dim gets the extent that its `conv_window` gives; other dims stay.
/// Communicates: nothing, or, along a sharded dim, one halo exchange.
/// Compile time: that x has the dims; that windows have taps; a real element type.
/// Throws: nothing.
/// @see conv, pool_window
constexpr symbol sum_pool(here x, list_view<pool_window> over) {
  builder& b = *x.owner;
  if (!detail::require_real(b, "sum_pool", {x})) return b.nothing();
  const detail::pool_parts p = detail::pooled(x, over, "sum_pool");
  if (b.failed()) return b.nothing();
  const short_list all = detail::counting(x.rank());
  return detail::emit_convolution(x, all, p.windows, p.taps, b.nothing(), {}, all, p.dims);
}
/// mean_pool(x, {{2, 3}, {3, 3}}): sum_pool, divided by the number of taps. Padding counts as zeros.
/// Shapes: every windowed dim gets the extent that its `conv_window` gives; other dims stay.
/// Communicates: nothing, or, along a sharded dim, one halo exchange.
/// Compile time: that x has the dims; that windows have taps; a real element type.
/// Throws: nothing.
/// @see sum_pool, pool_window
constexpr symbol mean_pool(here x, list_view<pool_window> over) {
  const symbol total = sum_pool(x, over);
  int count = 1;
  for (const pool_window& w : over) count *= w.taps;
  return x.owner->failed() ? x.owner->nothing() : detail::emit_scale(total, 1.0 / count);
}
/// max_pool(x, {{2, 3}, {3, 3}}): the largest element of each window; NaN if one is NaN. Padding does not count.
/// Shapes: every windowed dim gets the extent that its `conv_window` gives; other dims stay.
/// Communicates: nothing, or, along a sharded dim, one halo exchange.
/// Compile time: that x has the dims; that windows have taps; a real element type.
/// Throws: nothing.
/// @see min_pool, pool_window
constexpr symbol max_pool(here x, list_view<pool_window> over) { return detail::emit_pool(x, reduction::max, over, "max_pool"); }
/// min_pool(x, {{2, 3}, {3, 3}}): the smallest element of each window; NaN if one is NaN. Padding does not count.
/// Shapes: every windowed dim gets the extent that its `conv_window` gives; other dims stay.
/// Communicates: nothing, or, along a sharded dim, one halo exchange.
/// Compile time: that x has the dims; that windows have taps; a real element type.
/// Throws: nothing.
/// @see max_pool, pool_window
constexpr symbol min_pool(here x, list_view<pool_window> over) { return detail::emit_pool(x, reduction::min, over, "min_pool"); }

template <std::size_t N>
constexpr symbol sum_pool(here x, const pool_window (&over)[N]) {
  return sum_pool(x, list_view(over, N));
}
template <std::size_t N>
constexpr symbol mean_pool(here x, const pool_window (&over)[N]) {
  return mean_pool(x, list_view(over, N));
}
template <std::size_t N>
constexpr symbol max_pool(here x, const pool_window (&over)[N]) {
  return max_pool(x, list_view(over, N));
}
template <std::size_t N>
constexpr symbol min_pool(here x, const pool_window (&over)[N]) {
  return min_pool(x, list_view(over, N));
}

GSHARD_TAKES(sum_pool, (detail::call<2, symbol, detail::list_of<pool_window>>::fits<Given...>),
             "sum_pool(x, {{dim, taps}, ...}) takes a tensor of a program and a list of windows")
GSHARD_TAKES(mean_pool, (detail::call<2, symbol, detail::list_of<pool_window>>::fits<Given...>),
             "mean_pool(x, {{dim, taps}, ...}) takes a tensor of a program and a list of windows")
GSHARD_TAKES(max_pool, (detail::call<2, symbol, detail::list_of<pool_window>>::fits<Given...>),
             "max_pool(x, {{dim, taps}, ...}) takes a tensor of a program and a list of windows")
GSHARD_TAKES(min_pool, (detail::call<2, symbol, detail::list_of<pool_window>>::fits<Given...>),
             "min_pool(x, {{dim, taps}, ...}) takes a tensor of a program and a list of windows")

}}  // namespace gshard::v0
