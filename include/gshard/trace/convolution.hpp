// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Convolutions and pooling: conv, sum_pool, mean_pool, max_pool and min_pool.

#include <gshard/base/fixed_string.hpp>
#include <gshard/ir/equation.hpp>
#include <gshard/ir/window.hpp>
#include <gshard/trace/builder.hpp>
#include <gshard/trace/einsum.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

/// The window along one spatial dim. Output i reads position stride * i - low + step * k for tap k. There are dilation - 1 holes between
/// the elements of the input, and `low` and `high` zeros before and after them.
struct conv_window {
  int stride = 1, low = 0, high = 0;
  int step = 1;      // window dilation
  int dilation = 1;  // base dilation
};

/// tap_of(e, d): the tap factor of dim d of conv's first operand, or -1 if the dim has no window. Its letter is the dim's letter in lower
/// case. `how` of conv lists the windows in the order of these dims.
/// Shapes: nothing; the equation alone decides.
/// Communicates: nothing.
/// Compile time: nothing.
/// Throws: nothing.
/// @see conv
constexpr int tap_of(const equation& e, int d) {
  const int f = e.operand(0)[d];
  const char spatial = e.letters[std::size_t(f)];
  const int tap = spatial >= 'A' && spatial <= 'Z' ? e.factor(char(spatial - 'A' + 'a')) : -1;
  const bool windowed = tap >= 0 && e.operand(1).contains(tap) && !e.operand(0).contains(tap) && !e.operand(1).contains(f) &&
                        !e.output.contains(tap) && e.output.contains(f);
  return windowed ? tap : -1;
}

namespace detail {

/// op::convolution: out[o] = sum over the factors that o lacks of patches(a) * b. A dim of `a` with window w and tap factor t is read at
/// w.position(its factor, t). `taps`: for each dim of a, 1 + its tap factor, or 0.
constexpr symbol emit_convolution(symbol a, const short_list& a_factors, const dim_list& windows, const dim_list& taps, symbol second,
                                  const short_list& second_factors, const short_list& output, const dim_list& dims) {
  builder& b = *a.owner;
  if (b.failed()) return b.nothing();
  sharding_rule rule;
  rule.in[0] = a_factors;
  rule.in[1] = second_factors;
  rule.out[0] = output;
  rule.windows = windows;
  const std::array ids{a.id, second.id};
  return {&b, b.add_node(op::convolution, list_view(ids.data(), second.id < 0 ? 1u : 2u), rule, {.dims = taps}, {{dims, a.get().type}})};
}

/// The output dim of a window with these taps over dim `whole`.
constexpr int positions_dim(builder& b, int whole, int taps, const conv_window& w) {
  return b.linear_dim(whole, w.dilation, taps, -w.step, std::int64_t(w.low) + w.high - w.dilation + w.step + w.stride, w.stride);
}

constexpr bool check_window(builder& b, std::string_view operation, const conv_window& w) {
  if (w.stride < 1) b.fail_range(operation, ".stride", w.stride);
  if (w.step < 1) b.fail_range(operation, ".step", w.step);
  if (w.dilation < 1) b.fail_range(operation, ".dilation", w.dilation);
  return !b.failed();
}

/// The position in the equation where the operand repeats this letter, or -1.
constexpr int repeated_at(std::string_view equation, int operand, char letter) {
  int commas = 0, seen = 0;
  for (std::size_t at = 0; at < equation.size(); ++at) {
    if (equation[at] == ',') ++commas;
    if (commas == operand && equation[at] == letter && ++seen == 2) return int(at);
  }
  return -1;
}

constexpr symbol emit_windowed_einsum(symbol x, symbol w, const equation& e, list_view<conv_window> how, std::string_view text) {
  builder& b = *x.owner;
  if (!require_real(b, text, {x, w})) return b.nothing();
  const std::array operands{x, w};
  std::array<int, equation::most_factors> dim_of{};
  dim_of.fill(-1);
  for (int i = 0; i < 2; ++i) {
    const short_list& factors = e.operand(i);
    const value& v = operands[std::size_t(i)].get();
    if (v.rank() != factors.size()) b.fail_rank(text, i, factors.size(), v.rank());
    for (int d = 0; d < v.rank() && !b.failed(); ++d) {
      int& known = dim_of[std::size_t(factors[d])];
      const char letter = e.letters[std::size_t(factors[d])];
      if (factors.find(factors[d]) != d) b.fail(fault::index_repeated, text, {&letter, 1}, repeated_at(text, i, letter));
      else if (known >= 0 && !b.same_extent(known, v.dims[d])) b.fail(fault::dims_differ, text, {&letter, 1}, i, d);
      known = v.dims[d];
    }
  }
  if (b.failed()) return b.nothing();
  dim_list windows, taps;
  std::size_t spatial = 0;
  for (int d = 0; d < x.rank(); ++d) {
    windows.push_back(0);
    taps.push_back(0);
    const int f = e.operand(0)[d], tap = tap_of(e, d);
    if (tap < 0) continue;
    taps.set(d, tap + 1);
    const conv_window move = how.empty() ? conv_window{} : how[how.size() == 1 ? 0 : spatial < how.size() ? spatial : 0];
    ++spatial;
    if (!check_window(b, text, move)) return b.nothing();
    window in;
    in.taps_dim = std::int16_t(dim_of[std::size_t(tap)]);
    in.over = std::int16_t(positions_dim(b, x.get().dims[d], in.taps_dim, move));
    in.stride = move.stride;
    in.low = -move.low;
    in.step = move.step;
    in.dilation = move.dilation;
    dim_of[std::size_t(f)] = in.over;
    windows.set(d, b.row_of(in));
  }
  if (spatial == 0 || (how.size() > 1 && how.size() != spatial)) {
    b.fail(fault::no_taps, text);
    return b.nothing();
  }
  dim_list dims;
  for (int d = 0; d < e.output.size(); ++d) dims.push_back(dim_of[std::size_t(e.output[d])]);
  return emit_convolution(x, e.operand(0), windows, taps, w, e.operand(1), e.output, dims);
}

}  // namespace detail

/// conv<"BIXY,xyIO->BOXY">(x, w, {{.stride = 2, .low = 1, .high = 1}}): a convolution (arXiv 2006.16668 appendix A.4) as an einsum. A
/// lower-case letter of w is the tap of the upper-case dim of x and of the result:
/// out[b, o, X, ...] = sum over i, x, ... of x[b, i, stride X - low + step x, ...] w[x, ..., i, o].
/// `how` has one entry per spatial dim in the order of x, one for all, or none (stride 1, no padding). Padding is zero. Whether a zero of
/// the padding is multiplied by a NaN of w depends on the sharding.
/// Shapes: as the equation says; one to three spatial dims.
/// Communicates: as einsum. A sharded spatial dim adds one halo exchange. Sharded taps add an exchange of the elements that they read, and
/// a sum.
/// Compile time: the equation, ranks and dims.
/// Throws: nothing.
/// @see einsum, sum_pool, conv_window
template <fixed_string Equation>
constexpr symbol conv(here x, symbol w, list_view<conv_window> how = {}) {
  return detail::emit_windowed_einsum(x, w, detail::checked_equation<Equation>(*x.owner, 2), how, Equation.view());
}
template <fixed_string Equation, std::size_t N>
constexpr symbol conv(here x, symbol w, const conv_window (&how)[N]) {
  return conv<Equation>(x, w, list_view(how, N));
}
/// conv("BIXY,xyIO->BOXY", x, w, how): the same with an equation that is known at run time.
constexpr symbol conv(std::string_view text, here x, symbol w, list_view<conv_window> how = {}) {
  return detail::emit_windowed_einsum(x, w, detail::checked_equation(*x.owner, text, 2), how, text);
}
template <std::size_t N>
constexpr symbol conv(std::string_view text, here x, symbol w, const conv_window (&how)[N]) {
  return conv(text, x, w, list_view(how, N));
}

/// A window over one dim of a pooled tensor.
struct pool_window {
  int dim = 0, taps = 1;
  conv_window how = {};
};

namespace detail {

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
  return {&b, b.add_node(op::pool, {x.id}, rule, {.combine = what}, {{p.dims, x.get().type}, {p.dims, dtype::i32}})};
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

}}  // namespace gshard::v0
