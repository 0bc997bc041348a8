// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/list_view.hpp>
#include <gshard/base/fixed_string.hpp>
#include <gshard/trace/builder.hpp>

#include <array>
#include <concepts>
#include <cstdint>

namespace gshard { inline namespace v0 {

namespace detail {

/// Lines the dims of an operand up with the dims of the result, from the last to the first, by dim. False if they don't fit.
constexpr bool line_up(const dim_list& operand, const dim_list& result, short_list& factors) {
  factors = counting(operand.count);
  if (operand.same(result)) return true;
  int r = result.count - 1;
  for (int d = operand.count - 1; d >= 0; --d, --r) {
    while (r >= 0 && result[r] != operand[d]) --r;
    if (r < 0) return false;
    factors.set(d, r);
  }
  return true;
}

/// op::map. Attributes: function. The result has the dims of the first operand of highest rank; dims that the others lack are
/// broadcast.
constexpr symbol emit_map(builder& b, const pointwise& f, list_view<symbol> operands) {
  if (b.failed()) return b.nothing();
  const value* const values = b.program.values.data();
  const symbol* const given = operands.data();
  const std::size_t count = operands.size();
  const dtype type = values[given[0].id].type;
  dim_list dims = values[given[0].id].dims;
  for (std::size_t i = 1; i < count; ++i)
    if (values[given[i].id].dims.count > dims.count) dims = values[given[i].id].dims;
  rule loops;
  std::int32_t ids[rule::most_in]{};
  for (std::size_t i = 0; i < count; ++i) {
    const value& v = values[given[i].id];
    ids[i] = given[i].id;
    if (v.type != type || type == dtype::i32) {
      b.fail(fault::wrong_type, "map", {}, int(i));
      return b.nothing();
    }
    if (!line_up(v.dims, dims, loops.in[i])) {
      b.fail(fault::dims_do_not_broadcast, "map", {}, int(i));
      return b.nothing();
    }
  }
  loops.out[0] = counting(dims.count);
  attributes attr;
  attr.function = &f;
  return {&b, b.add_node(op::map, list_view(ids, count), loops, attr, {{dims, type}})};
}

/// op::scale: x * constant * (product of the extents of `over`)^power. Attributes: number[0], number[1] = power, dims.
constexpr symbol emit_scale(symbol x, double constant, const dim_list& over = {}, double power = 0) {
  builder& b = *x.owner;
  if (!require_real(b, "scale", {x})) return b.nothing();
  rule loops;
  loops.in[0] = loops.out[0] = counting(x.rank());
  attributes attr;
  attr.number[0] = constant;
  attr.number[1] = power;
  attr.dims = over;
  return {&b, b.add_node(op::scale, {x.id}, loops, attr, {{x.get().dims, x.get().type}})};
}

template <class T, int Number>
void fill_row(const T* const*, const std::int64_t*, T* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = T(Number);
}
/// The same number everywhere, as a map without operands: it does not wait for the value it is shaped like.
template <int Number>
inline constexpr pointwise pointwise_constant{
    .f32 = fill_row<float, Number>, .f64 = fill_row<double, Number>};

constexpr symbol emit_constant(const pointwise& number, symbol like) {
  builder& b = *like.owner;
  if (b.failed()) return b.nothing();
  rule loops;
  loops.out[0] = counting(like.rank());
  attributes attr;
  attr.function = &number;
  return {&b, b.add_node(op::map, {}, loops, attr, {{like.get().dims, like.get().type}})};
}

/// f of tensors whose dims are these dims of `like`.
constexpr symbol emit_map_of(const pointwise& f, list_view<symbol> operands, list_view<short_list> dims, symbol like) {
  builder& b = *like.owner;
  if (b.failed()) return b.nothing();
  rule r;
  std::array<std::int32_t, rule::most_in> ids{};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    r.in[i] = dims[i];
    ids[i] = operands[i].id;
  }
  r.out[0] = counting(like.rank());
  attributes attr;
  attr.function = &f;
  return {&b, b.add_node(op::map, list_view(ids.data(), operands.size()), r, attr, {{like.get().dims, like.get().type}})};
}

}  // namespace detail

/// map<f>(x, ...)[i] = f(x[i], ...) for a captureless generic callable. Operands of lower rank are broadcast over the dims that
/// they lack (dims are matched by their letters, from the last). Differentiated by calling f on dual numbers.
/// Communicates nothing where its operands lie alike.
template <auto F, class... Symbols>
  requires(std::same_as<Symbols, symbol> && ...)
constexpr symbol map(here first, Symbols... rest) {
  static_assert(sizeof...(rest) < std::size_t(pointwise::most_operands) - 1, "gshard: map takes at most 5 operands");
  const std::array<symbol, 1 + sizeof...(rest)> operands{first, rest...};
  return detail::emit_map(*first.owner, pointwise_of<F, 1 + int(sizeof...(rest))>, operands);
}

constexpr symbol operator+(here a, symbol b) {
  return detail::emit_map(*a.owner, pointwise_add, std::array<symbol, 2>{a, b});
}
constexpr symbol operator-(here a, symbol b) {
  return detail::emit_map(*a.owner, pointwise_subtract, std::array<symbol, 2>{a, b});
}
constexpr symbol operator*(here a, symbol b) {
  return map<[](auto x, auto y) { return x * y; }>(a, b);
}
constexpr symbol operator/(here a, symbol b) {
  return map<[](auto x, auto y) { return x / y; }>(a, b);
}
constexpr symbol operator*(double c, here x) { return detail::emit_scale(x, c); }
constexpr symbol operator*(here x, double c) { return detail::emit_scale(x, c); }
constexpr symbol operator-(here x) { return detail::emit_scale(x, -1); }

namespace detail {
/// A tensor of the dims of x, each element c.
constexpr symbol emit_filled(symbol x, double c) { return emit_scale(emit_constant(pointwise_constant<1>, x), c); }
}  // namespace detail

constexpr symbol operator+(here x, double c) { return x.owner->failed() ? x.owner->nothing() : x + detail::emit_filled(x, c); }
constexpr symbol operator+(double c, here x) { return x + c; }
constexpr symbol operator-(here x, double c) { return x + -c; }
constexpr symbol operator-(double c, here x) { return x.owner->failed() ? x.owner->nothing() : here(detail::emit_filled(x, c)) - x; }
constexpr symbol operator/(here x, double c) { return x.owner->failed() ? x.owner->nothing() : x / detail::emit_filled(x, c); }
constexpr symbol operator/(double c, here x) { return x.owner->failed() ? x.owner->nothing() : here(detail::emit_filled(x, c)) / x; }

/// x * (product of the extents of these dims)^power, with the extents that the program is run with: `scale_by<"D">(q, -0.5)`.
template <fixed_string Letters>
constexpr symbol scale_by(here x, double power) {
  builder& b = *x.owner;
  if (b.failed()) return b.nothing();
  return detail::emit_scale(x, 1, b.dims_of(Letters.view(), "scale_by"), power);
}

/// max(x, 0).
constexpr symbol relu(here x) {
  return detail::emit_map(*x.owner, pointwise_by_result<[](auto v) { return 0 < v ? v : decltype(v)(0); }>, std::array<symbol, 1>{x});
}

/// The same numbers with another element type; integers are not differentiated.
constexpr symbol cast(here x, dtype type) {
  builder& b = *x.owner;
  if (b.failed()) return b.nothing();
  rule loops;
  loops.in[0] = loops.out[0] = detail::counting(x.rank());
  return {&b, b.add_node(op::cast, {x.id}, loops, {}, {{x.get().dims, type}})};
}
template <class T>
constexpr symbol cast(here x) {
  return cast(x, dtype_of<T>);
}

}}  // namespace gshard::v0
