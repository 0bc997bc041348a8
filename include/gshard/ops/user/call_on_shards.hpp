// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Functions of shards: every device calls a C++ function with its shards.

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/ir/pointwise.hpp>
#include <gshard/core/ir/spec.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/shape.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation call_on_shards{.id = 37, .name = "call_on_shards", .follows_result = true, .declares_result = true,
    .user_code = true};
}  // namespace op

/// One tensor in a local function: the elements of the device's shard, row-major, and the position of the shard.
template <class T>
struct local_shard {
  T* data;
  const shard_place& at;

  constexpr std::int64_t extent(int d) const { return at.extent[std::size_t(d)]; }
  constexpr std::int64_t offset(int d) const { return at.offset[std::size_t(d)]; }
  constexpr std::int64_t global(int d) const { return at.global[std::size_t(d)]; }
  constexpr std::int64_t size() const {
    std::int64_t n = 1;
    for (int d = 0; d < at.rank; ++d) n *= extent(d);
    return n;
  }
};

namespace detail {

template <class T, auto F, int Arity>
void run_on_shards(const T* const* in, const shard_place* in_at, T* out, const shard_place& out_at) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    F(local_shard<const T>{in[I], in_at[I]}..., local_shard<T>{out, out_at});
  }(std::make_index_sequence<std::size_t(Arity)>{});
}

/// The compiler's name of a function. Lambdas are named by their place or number.
template <auto F>
constexpr std::string_view text_of_function() {
  std::string_view text = __PRETTY_FUNCTION__;
  if (const std::size_t begin = text.find("F = "); begin != text.npos) text.remove_prefix(begin + 4);
  return text.substr(0, text.find_last_of(";]"));
}

template <auto F, int Arity>
inline constexpr pointwise shards_of{.arity = Arity,
                                     .shards_f32 = run_on_shards<float, F, Arity>,
                                     .shards_f64 = run_on_shards<double, F, Arity>,
                                     .function = text_of_function<F>()};

/// op::call_on_shards. Every dim has a factor of its own: operands and result keep their annotated shardings.
constexpr symbol emit_call_on_shards(const pointwise& f, list_view<symbol> operands, const dim_list& dims, const sharding& layout) {
  builder& b = *operands[0].owner;
  for (const symbol& s : operands)
    if (!b.has(s)) return b.nothing();
  sharding_rule rule;
  std::array<std::int32_t, sharding_rule::most_in> ids{};
  int factor = dims.size();
  rule.out[0] = counting(dims.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const value& v = operands[i].get();
    const dtype type = operands[0].get().type;
    if (v.type != type || !is_real(type)) b.fail_type("call_on_shards", int(i), v.type, i == 0 ? reals : only(type));
    if (factor + v.rank() > short_list::largest) b.fail(fault::rank_mismatch, "call_on_shards", {}, short_list::largest, factor + v.rank());
    if (v.layout.open) b.fail(fault::not_annotated, "call_on_shards", {}, int(i));
    if (b.failed()) return b.nothing();
    rule.in[i] = counting(v.rank(), factor);
    factor += v.rank();
    ids[i] = operands[i].id;
  }
  const symbol y{&b, b.add_node(op::call_on_shards, list_view(ids.data(), operands.size()), rule, {.function = &f},
                                {{dims, operands[0].get().type}})};
  b.program.at(y.id).layout = layout;
  return y;
}

template <auto F, class Spec, class... Symbols>
constexpr symbol call_on_shards_as(const dim_list& dims, symbol first, Symbols... rest) {
  static_assert(sizeof...(rest) < 5, "gshard: call_on_shards takes at most 5 operands");
  builder& b = *first.owner;
  if (!b.failed() && Spec::rank != dims.size()) b.fail(fault::rank_mismatch, "call_on_shards", {}, Spec::rank, dims.size());
  const sharding layout = b.resolve(Spec::named, "call_on_shards");
  sharding made = layout;
  made.order = 0;
  const std::array<symbol, 1 + sizeof...(rest)> operands{first, rest...};
  const symbol y = emit_call_on_shards(shards_of<F, 1 + int(sizeof...(rest))>, operands, dims, made);
  return layout.order ? emit_annotate(y, layout) : y;
}

}  // namespace detail

/// call_on_shards<f, "B@data,M">(x, ...): calls a C++ function on every device with its shards. f(local_shard<const T> x, ...,
/// local_shard<T> result) reads its shards of the operands and fills its shard of the result. The text declares the dims and the sharding
/// of the result; `+axis` declares a partial sum. call_on_shards<f, "BM", P<"data", none>>(x, ...) is the same. It has no gradient.
/// Shapes: at most 5 operands of one element type -> the declared dims and sharding.
/// Communicates: nothing but the reshards of operands to their annotations.
/// Compile time: that every operand is annotated in all its dims; rank and axes of the spec.
/// Throws: the exceptions of f, on all processes.
/// @see per_shard for regions of verbs, with collectives and gradients
template <auto F, fixed_string Letters, class Spec, class... Symbols>
  requires(std::same_as<Symbols, symbol> && ...)
constexpr symbol call_on_shards(here first, Symbols... rest) {
  builder& b = *first.owner;
  return b.failed() ? b.nothing() : detail::call_on_shards_as<F, Spec>(b.dims_of(Letters.view(), "call_on_shards"), first, rest...);
}

// auto: the assertion fires before the model is evaluated
template <auto F, fixed_string Dims, class... Symbols>
  requires(std::same_as<Symbols, symbol> && ...)
constexpr auto call_on_shards(here first, Symbols... rest) {
  constexpr dims_text text{Dims.view()};
  constexpr bool states_sharding = text.has_letters() && text.is_sharded;
  static_assert(states_sharding,
                "gshard: call_on_shards<f, \"B@data,M\">(x, ...) takes all dims with commas between them, and the axes that shard them");
  if constexpr (states_sharding) {
    builder& b = *first.owner;
    using Spec = typename detail::spec_of_text<Dims>::type;
    return b.failed() ? b.nothing() : detail::call_on_shards_as<F, Spec>(b.dims_of(text.letters.view(), "call_on_shards"), first, rest...);
  } else {
    return detail::refused(first, rest...);
  }
}

/// call_on_shards<f, P<"data", none>>(x, ...): the same; the result has the dims of x. For regions, where dims have no letters.
template <auto F, class Spec, class... Symbols>
  requires(std::same_as<Symbols, symbol> && ...)
constexpr symbol call_on_shards(here first, Symbols... rest) {
  builder& b = *first.owner;
  return b.failed() ? b.nothing() : detail::call_on_shards_as<F, Spec>(first.get().dims, first, rest...);
}

template <auto F, class Spec, class... Given>
  requires(!detail::tensors<1, 5>::fits<Given...>)
constexpr auto call_on_shards(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: call_on_shards<f, \"B@data,M\">(x, ...) takes a function, dims with their mesh axes, and tensors of a program");
  return detail::refused(given...);
}
template <auto F, fixed_string Dims, class... Spec, class... Given>
  requires(!detail::tensors<1, 5>::fits<Given...>)
constexpr auto call_on_shards(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: call_on_shards<f, \"B@data,M\">(x, ...) takes a function, dims with their mesh axes, and tensors of a program");
  return detail::refused(given...);
}

}}  // namespace gshard::v0
