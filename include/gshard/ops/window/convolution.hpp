// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Convolutions: conv.

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/grad/differentiator.hpp>
#include <gshard/core/ir/equation.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/ir/window.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation convolution{.id = 34, .name = "convolution", .product = true, .windowed = 1, .taps = true};
}  // namespace op

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

constexpr void convolution_gradient(differentiator& d, const node& n);
inline constexpr operation_rules convolution_rules{.of = op::convolution, .gradient = convolution_gradient};

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
  return {&b, b.add_node(b.use(convolution_rules), list_view(ids.data(), second.id < 0 ? 1u : 2u), rule, {.dims = taps},
                         {{dims, a.get().type}})};
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

/// Each operand's gradient is a convolution of the other two tensors. The gradient of the second operand reads the first through the same
/// windows. The gradient of the first operand, which has the windows, uses their inverses.
constexpr void convolution_gradient(differentiator& d, const node& n) {
  builder& b = d.owner();
  const symbol dy = d.gradient(n);
  const short_list &a = n.rule.in[0], &w = n.rule.in[1], &y = n.rule.out[0];
  const symbol x = d.in(n, 0), second = n.inputs > 1 ? d.in(n, 1) : b.nothing();
  if (n.inputs > 1 && d.wants(n, 1)) {
    std::uint32_t elsewhere = a.mask() | y.mask();
    for (int k = 0; k < a.size(); ++k)
      if (n.attr.dims[k]) elsewhere |= 1u << (n.attr.dims[k] - 1);
    short_list known;
    dim_list dims;
    for (int k = 0; k < w.size(); ++k) {
      if (!((elsewhere >> w[k]) & 1u)) continue;  // only summed: the gradient is constant along it
      known.push_back(w[k]);
      dims.push_back(second.get().dims[k]);
    }
    symbol g = emit_convolution(x, a, n.rule.windows, n.attr.dims, dy, y, known, dims);
    if (!b.failed() && known.size() < w.size()) g = emit_broadcast(g, known, w, second.get().dims);
    d.add(n.input(1), g);
  }
  if (!d.wants(n, 0)) return;
  // The tensor with the positions is read through the inverse windows. The other tensor has the taps, if there are any.
  bool positions_in_y = true;
  for (int k = 0; k < a.size(); ++k)
    if (n.rule.windows[k]) positions_in_y = positions_in_y && y.contains(a[k]);
  const symbol from = positions_in_y ? dy : second, other = positions_in_y ? second : dy;
  const short_list &from_factors = positions_in_y ? y : w, &other_factors = positions_in_y ? w : y;
  dim_list windows, taps, dims;
  for (int k = 0; k < from_factors.size(); ++k) {
    windows.push_back(0);
    taps.push_back(0);
  }
  short_list known;
  for (int k = 0; k < a.size(); ++k) {
    const int at = from_factors.find(a[k]);
    if (n.rule.windows[k]) {
      if (at < 0) return b.fail(fault::not_differentiable, "convolution");
      windows.set(at, b.row_of(b.program.windows[std::size_t(n.rule.windows[k])].inverse(x.get().dims[k])));
      taps.set(at, n.attr.dims[k]);
    } else if (at < 0 && !(other.id >= 0 && other_factors.contains(a[k]))) {
      continue;  // only summed: the gradient is constant along it
    }
    known.push_back(a[k]);
    dims.push_back(x.get().dims[k]);
  }
  symbol g = emit_convolution(from, from_factors, windows, taps, other, other_factors, known, dims);
  if (!b.failed() && known.size() < a.size()) g = emit_broadcast(g, known, a, x.get().dims);
  d.add(n.input(0), g);
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

template <fixed_string Equation = "", class... Given>
  requires(detail::left_out<Equation> ? !detail::call<3, std::string_view, symbol, symbol, detail::list_of<conv_window>>::fits<Given...>
                                      : !detail::call<2, symbol, symbol, detail::list_of<conv_window>>::fits<Given...>)
constexpr auto conv(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: conv<\"BIXY,xyIO->BOXY\">(x, w, {{.stride = 2}}) takes an equation, two tensors of a program and windows");
  return detail::refused(given...);
}

}}  // namespace gshard::v0
