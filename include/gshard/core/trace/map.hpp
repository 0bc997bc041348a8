// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Elementwise operations: map with a user's function, arithmetic, relu and cast.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/base/reason.hpp>
#include <gshard/core/ir/attributes.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>

#include <array>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace gshard { inline namespace v0 {

struct scale_attributes {
  double power = 0;

  static constexpr void each(auto& all, auto f) { f("power", all.power); }
};

/// cast between a real and a complex type.
struct cast_attributes {
  bool imaginary = false;  ///< to or from the imaginary part, not the real one

  static constexpr void each(auto& all, auto f) { f("imaginary", all.imaginary); }
};

namespace detail {

/// T, once for each type of a pack.
template <class, class T>
using same_for = T;

/// The number of ways in which the dims of an operand match dims of a result in order: 0, 1, or 2 for several. `factors`: the last way.
/// `match(r, d)`: dim r of the result may be dim d of the operand.
template <class Match>
constexpr int line_up(int operand, int result, short_list& factors, Match match) {
  factors = counting(operand);
  int r = result - 1;
  for (int d = operand - 1; d >= 0; --d, --r) {
    while (r >= 0 && !match(r, d)) --r;
    if (r < 0) return 0;
    factors.set(d, r);
  }
  r = 0;
  for (int d = 0; d < operand; ++d, ++r) {
    while (!match(r, d)) ++r;
    if (r != factors[d]) return 2;  // the first way is not the last one
  }
  return 1;
}
/// The same by names of dims; if they do not match, also by extents that are known to be equal.
constexpr int line_up(const builder& b, const dim_list& operand, const dim_list& result, short_list& factors) {
  factors = counting(operand.count);
  if (operand.same(result)) return 1;
  const int by_name = line_up(operand.count, result.count, factors, [&](int r, int d) { return result[r] == operand[d]; });
  if (by_name != 0) return by_name;
  return line_up(operand.count, result.count, factors, [&](int r, int d) { return b.same_extent(result[r], operand[d]); });
}

/// x, broadcast to these dims. `from`, `to`: the letters of x and of the result.
constexpr symbol emit_broadcast(symbol x, const short_list& from, const short_list& to, const dim_list& dims) {
  builder& b = *x.owner;
  if (b.failed() || from.same(to)) return b.failed() ? b.nothing() : x;
  sharding_rule rule;
  rule.out[0] = counting(to.size());
  for (int d = 0; d < from.size(); ++d) rule.in[0].push_back(to.find(from[d]));
  return {&b, b.add_node(op::map, {x.id}, rule, {.function = &pointwise_identity}, {{dims, x.get().type}})};
}

/// If an elementwise operation reads the result of a broadcast, it reads the operand of the broadcast instead.
constexpr void read_before_broadcast(const graph& g, std::int32_t& id, short_list& factors) {
  while (g.at(id).producer >= 0) {
    const node& n = g.nodes[std::size_t(g.at(id).producer)];
    if (n.kind != op::map || n.inputs != 1 || !n.attr.function->is_identity()) return;
    short_list before;
    for (int d = 0; d < n.rule.in[0].size(); ++d) before.push_back(factors[n.rule.in[0][d]]);
    factors = before;
    id = n.in[0];
  }
}

/// x if z is conj(conj(x)), otherwise z. Einsums read x: their derivatives conjugate operands that may be conjugates.
constexpr std::int32_t before_conjugations(const graph& g, std::int32_t z) {
  if (!is_complex(g.at(z).type)) return z;
  std::int32_t inner = z;
  for (int i = 0; i < 2; ++i) {
    const std::int32_t maker = g.at(inner).producer;
    const node* const n = maker < 0 ? nullptr : &g.nodes[std::size_t(maker)];
    if (!n || n->kind != op::map || n->attr.function->own != arithmetic::number_of<arithmetic::conjugate>) return z;
    inner = n->in[0];
  }
  return g.at(inner).dims == g.at(z).dims ? inner : z;
}

/// op::map. The result has the dims of the first operand of highest rank. Other operands are broadcast to them.
constexpr symbol emit_map(builder& b, const pointwise& f, list_view<symbol> operands) {
  const symbol* const given = operands.data();
  const std::size_t count = operands.size();
  for (std::size_t i = 0; i < count; ++i)
    if (!b.has(given[i])) return b.nothing();
  const value* const values = b.program.values.data();
  const dtype type = values[given[0].id].type;
  dim_list dims = values[given[0].id].dims;
  for (std::size_t i = 1; i < count; ++i)
    if (values[given[i].id].dims.count > dims.count) dims = values[given[i].id].dims;
  sharding_rule rule;
  std::int32_t ids[sharding_rule::most_in]{};
  const auto next_value = std::int32_t(b.program.values.size());
  for (std::size_t i = 0; i < count; ++i) {
    const value& v = values[given[i].id];
    ids[i] = given[i].id;
    if (v.type != type || !((f.types >> int(type)) & 1u)) {
      b.fail_type("map", int(i), v.type, i == 0 ? f.types : only(type));
      return b.nothing();
    }
    if (const int ways = line_up(b, v.dims, dims, rule.in[i]); ways != 1) {
      b.fail(ways ? fault::ambiguous_dims : fault::dims_do_not_broadcast, "map", {}, int(i));
      return b.nothing();
    }
    const short_list factors = rule.in[i];
    read_before_broadcast(b.program, ids[i], rule.in[i]);
    if (ids[i] != given[i].id) b.bypasses.push_back({next_value, given[i].id, int(i), factors, op::map});
  }
  rule.out[0] = counting(dims.count);
  return {&b, b.add_node(op::map, list_view(ids, count), rule, {.function = &f}, {{dims, type}})};
}

/// op::scale: x * constant * (product of the extents of `over`)^power. Integers are scaled by integers alone.
constexpr symbol emit_scale(symbol x, double constant, const dim_list& over = {}, double power = 0) {
  builder& b = *x.owner;
  if (!b.has(x)) return b.nothing();
  const auto takes = [&](dtype t) {
    return contains(traits(op::scale).elements, t) && can_hold(t, constant) && (power == 0 || is_differentiable(t));
  };
  if (!takes(x.get().type)) {
    b.fail_type("scale", 0, x.get().type, types_with(takes));
    return b.nothing();
  }
  sharding_rule rule;
  rule.in[0] = rule.out[0] = counting(x.rank());
  const attributes attr{.factor = constant, .own = scale_attributes{power}, .dims = over};
  return {&b, b.add_node(op::scale, {x.id}, rule, attr, {{x.get().dims, x.get().type}})};
}

/// 0 and 1, as maps without operands: they do not depend on the tensor whose dims they have.
template <int Number>
  requires(Number == 0 || Number == 1)
inline constexpr const pointwise& pointwise_constant = own_function<arithmetic::constant<Number>>;

constexpr symbol emit_constant(builder& b, const pointwise& number, const dim_list& dims, dtype type) {
  if (b.failed()) return b.nothing();
  sharding_rule rule;
  rule.out[0] = counting(dims.size());
  return {&b, b.add_node(op::map, {}, rule, {.function = &number}, {{dims, type}})};
}
constexpr symbol emit_constant(const pointwise& number, symbol like) {
  builder& b = *like.owner;
  return b.failed() ? b.nothing() : emit_constant(b, number, like.get().dims, like.get().type);
}

/// f of the operands. `dims`: for each operand, its dims as dims of `like`.
constexpr symbol emit_map_of(const pointwise& f, list_view<symbol> operands, list_view<short_list> dims, symbol like) {
  builder& b = *like.owner;
  if (b.failed()) return b.nothing();
  sharding_rule r;
  std::array<std::int32_t, sharding_rule::most_in> ids{};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    r.in[i] = dims[i];
    ids[i] = operands[i].id;
  }
  r.out[0] = counting(like.rank());
  return {&b, b.add_node(op::map, list_view(ids.data(), operands.size()), r, {.function = &f}, {{like.get().dims, like.get().type}})};
}

template <class Result>
inline constexpr bool is_mapped = std::is_convertible_v<Result, dual<float>>;
template <bool Fits, auto F, int Count>
constexpr auto emit_map_if(list_view<symbol> operands) {
  if constexpr (Fits) return emit_map(*operands[0].owner, pointwise_of<F, Count>, operands);
  else return refused(operands[0]);
}
}  // namespace detail

/// map<f>(x, ...)[i] = f(x[i], ...) for a captureless generic callable. Gradients call f on dual numbers.
///
/// The operands of all elementwise verbs match as follows. The result has the dims of the operand of highest rank. The dims of every other
/// operand must be found among them, by name and in the same order, in exactly one way. Along the remaining dims the operand is broadcast.
/// Therefore operands of equal rank have equal dims, and a scalar matches anything. A dim of extent 1 is not repeated. Use `broadcast` in
/// all other cases.
/// Shapes: operands as above -> the dims of the operand of highest rank. At most 5 operands.
/// Communicates: nothing if the operands have one sharding; otherwise the cheapest reshards. When several processes bind the program, each
/// calls f<double> at a few points between -3 and 3, to compare the functions.
/// Compile time: that dims match in exactly one way; one real element type; that f takes these numbers and returns one.
/// Throws: nothing.
/// @see broadcast, select
template <auto F, class... Symbols>
  requires(std::same_as<Symbols, symbol> && ...)
constexpr auto map(here first, Symbols... rest) {
  static_assert(sizeof...(rest) < std::size_t(pointwise::most_operands) - 1, "gshard: map takes at most 5 operands");
  using number = dual<float>;
  constexpr int count = 1 + int(sizeof...(rest));
  constexpr bool takes_these = detail::is_called_with<decltype(F), number, detail::same_for<Symbols, number>...>;
  static_assert(holds<takes_these, operands_given<count>>, "gshard: the function of map takes as many numbers as map is given tensors");
  const std::array<symbol, 1 + sizeof...(rest)> operands{first, rest...};
  if constexpr (takes_these) {
    // Called here to shorten the path of instantiations that compilers print for a mistake in F.
    using result = decltype(F(number(), detail::same_for<Symbols, number>()...));
    static_assert(holds<detail::is_mapped<result> || detail::is_refused<result>, actual_type<result>>,
                  "gshard: the function of map returns a number");
    return detail::emit_map_if<detail::is_mapped<result>, F, count>(operands);
  } else {
    return detail::refused(operands[0]);
  }
}
/// map(f, x, ...): the same with the function as an argument. Use it if f contains `v > 0`, which g++ 12 takes for the end of `map<...>`.
template <class F, class... Symbols>
  requires(std::is_empty_v<F> && (std::same_as<Symbols, symbol> && ...))
constexpr auto map(F, here first, Symbols... rest) {
  return map<F{}>(first, rest...);
}

constexpr symbol operator+(here a, symbol b) {
  return detail::emit_map(*a.owner, pointwise_add, std::array<symbol, 2>{a, b});
}
constexpr symbol operator-(here a, symbol b) {
  return detail::emit_map(*a.owner, pointwise_subtract, std::array<symbol, 2>{a, b});
}
constexpr symbol operator*(here a, symbol b) {
  using namespace detail::arithmetic;
  return detail::emit_map(*a.owner, detail::own_product<3, multiply, multiply_left_slope, multiply_right_slope>, std::array{symbol(a), b});
}
constexpr symbol operator/(here a, symbol b) {
  using namespace detail::arithmetic;
  return detail::emit_map(*a.owner, detail::own_product<1, divide, divide_left_slope, divide_right_slope>, std::array{symbol(a), b});
}
constexpr symbol operator*(double c, here x) { return detail::emit_scale(x, c); }
constexpr symbol operator*(here x, double c) { return detail::emit_scale(x, c); }
constexpr symbol operator-(here x) { return detail::emit_scale(x, -1); }

namespace detail {
/// A tensor with the dims of x, filled with c.
constexpr symbol emit_filled(symbol x, double c) { return emit_scale(emit_constant(pointwise_constant<1>, x), c); }
}  // namespace detail

constexpr symbol operator+(here x, double c) { return x.owner->failed() ? x.owner->nothing() : x + detail::emit_filled(x, c); }
constexpr symbol operator+(double c, here x) { return x + c; }
constexpr symbol operator-(here x, double c) { return x + -c; }
constexpr symbol operator-(double c, here x) { return x.owner->failed() ? x.owner->nothing() : here(detail::emit_filled(x, c), x) - x; }
constexpr symbol operator/(here x, double c) { return x.owner->failed() ? x.owner->nothing() : x / detail::emit_filled(x, c); }
constexpr symbol operator/(double c, here x) { return x.owner->failed() ? x.owner->nothing() : here(detail::emit_filled(x, c), x) / x; }

/// scale_by<"D">(x, power) = x * (product of the extents of these dims)^power, with the extents of the run.
/// Shapes: any -> the same.
/// Communicates: nothing.
/// Compile time: that the program knows the letters.
/// Throws: nothing.
/// @see map
template <fixed_string Letters>
constexpr symbol scale_by(here x, double power) {
  builder& b = *x.owner;
  if (b.failed()) return b.nothing();
  return detail::emit_scale(x, 1, b.dims_of(Letters.view(), "scale_by"), power);
}

namespace detail {
inline constexpr auto relu_of_number = [](auto v) { return gshard::relu(v); };
}  // namespace detail

/// relu(x) = max(x, 0). NaN stays NaN, and so does its derivative. The derivative at 0 is 0.
/// Shapes: any -> the same.
/// Communicates: nothing.
/// Compile time: a real element type.
/// Throws: nothing.
/// @see map
constexpr symbol relu(here x) {
  return detail::emit_map(*x.owner, pointwise_by_result<detail::relu_of_number>, std::array<symbol, 1>{x});
}

namespace detail {
/// op::cast. Between a real and a complex type: to or from the real part, or the imaginary part.
constexpr symbol emit_cast(symbol x, dtype type, bool imaginary = false) {
  builder& b = *x.owner;
  if (b.failed()) return b.nothing();
  sharding_rule rule;
  rule.in[0] = rule.out[0] = counting(x.rank());
  const bool fits_bf16 = x.get().type == dtype::bf16;
  const symbol result{&b, b.add_node(op::cast, {x.id}, rule, {.own = cast_attributes{imaginary}}, {{x.get().dims, type}})};
  b.program.at(result.id).fits_bf16 = fits_bf16;
  return result;
}
}  // namespace detail

/// cast(x, type), cast<T>(x): the same numbers with another element type. To integers: rounded towards zero; numbers out of range become
/// the nearest one of the type, and NaN the lowest. To bool: true if a number is not 0. To half precision: rounded to the nearest. Real
/// numbers become complex ones; use real and imag for the opposite. Integers and masks have no gradient. The gradient of half precision is
/// float: it ignores the rounding of a cast to half precision.
/// Shapes: any -> the same.
/// Communicates: nothing. If x is bf16, devices exchange the result in bf16.
/// Compile time: that no complex number is cast to another kind of number.
/// Throws: nothing.
/// @see iota, real, imag
constexpr symbol cast(here x, dtype type) {
  if (!x.owner->failed() && is_complex(x.get().type) && !is_complex(type))
    x.owner->fail_type("cast", 0, x.get().type, types_with([](dtype t) { return !is_complex(t); }));
  return detail::emit_cast(x, type);
}
template <class T>
constexpr symbol cast(here x) {
  return cast(x, dtype_of<T>);
}

namespace detail {
/// The identity without a gradient.
inline constexpr pointwise pointwise_stop = [] {
  pointwise f = own_function<arithmetic::identity>;
  f.stops_gradient = true;
  f.linear = true;
  return f;
}();
}  // namespace detail

/// stop_gradient(x): x, with a gradient of zero.
/// Shapes: any -> the same.
/// Communicates: nothing.
/// Compile time: nothing.
/// Throws: nothing.
/// @see differentiate.hpp
constexpr symbol stop_gradient(here x) { return detail::emit_map(*x.owner, detail::pointwise_stop, list_view(&x, 1)); }

namespace detail {
/// True for map(f, t, ...) of tensors outside of programs.
template <class... Given>
inline constexpr bool maps_outside = false;
template <class F, class First, class... More>
inline constexpr bool maps_outside<F, First, More...> =
    takes<plain_function, F> && tensors_of_any_kind<1, 5>::template fits<First, More...>;
}  // namespace detail

template <auto F, class... Given>
  requires(!detail::tensors_of_any_kind<1, 5>::fits<Given...>)
constexpr auto map(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: map<f>(x, ...) and map(f, x, ...) take a function without captures and one to five tensors");
  return detail::refused(given...);
}
GSHARD_TAKES(map, (detail::before_tensors<5, detail::plain_function>::fits<Given...> || detail::maps_outside<Given...>),
             "map<f>(x, ...) and map(f, x, ...) take a function without captures and one to five tensors")
GSHARD_TAKES(relu, (detail::tensors<1>::fits<Given...>), "relu(x) takes one tensor of a program")
GSHARD_TAKES(stop_gradient, (detail::tensors<1>::fits<Given...>), "stop_gradient(x) takes one tensor of a program")
template <fixed_string Letters = "", class... Given>
  requires(detail::left_out<Letters> || !detail::call<2, symbol, double>::fits<Given...>)
constexpr auto scale_by(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: scale_by<\"D\">(x, power) takes the letters of dims, a tensor of a program and a number");
  return detail::refused(given...);
}
template <class T = void, class... Given>
  requires(std::is_void_v<T> ? !detail::call<2, symbol, dtype>::fits<Given...> : !detail::tensors<1>::fits<Given...>)
constexpr auto cast(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: cast<double>(x) takes an element type and one tensor of a program");
  return detail::refused(given...);
}

}}  // namespace gshard::v0
