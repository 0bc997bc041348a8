// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// User-defined operations: a rule in letters, a kernel on shards, and a gradient made of verbs.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/grad/differentiator.hpp>
#include <gshard/core/ir/custom_operation.hpp>
#include <gshard/core/ir/equation.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/letters.hpp>
#include <gshard/ops/user/call_on_shards.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation custom{.id = 38, .name = "custom", .elements = all_elements, .custom = true,
    .user_code = true};
}  // namespace op

namespace detail {

/// The rule of a user's operation, and its optional members.
template <class Operation>
struct custom_parts {
  struct parse_result {
    equation rule;
    diagnostic problem;
  };
  static constexpr parse_result parsed = [] {
    parse_result r;
    r.rule = parse_equation(Operation::rule, r.problem);
    return r;
  }();
  static constexpr const equation& rule = parsed.rule;
  static constexpr std::string_view sums = [] {
    if constexpr (requires { Operation::sums; }) return std::string_view(Operation::sums);
    else return std::string_view();
  }();
  static constexpr std::string_view whole = [] {
    if constexpr (requires { Operation::whole; }) return std::string_view(Operation::whole);
    else return std::string_view();
  }();
  static constexpr double flops = [] {
    if constexpr (requires { Operation::flops; }) return double(Operation::flops);
    else return 0.0;
  }();

  static constexpr bool contains(std::string_view letters, char c) {
    for (const char letter : letters)
      if (letter == c) return true;
    return false;
  }
  /// True if `sums` and `whole` are valid. Both have letters of the rule only. Together they have all letters that the result lacks.
  /// `sums` has none of the result.
  static constexpr bool names_its_letters = [] {
    for (const std::string_view letters : {sums, whole})
      for (const char letter : letters)
        if (rule.factor(letter) < 0) return false;
    for (const char letter : sums)
      if (rule.output.contains(rule.factor(letter))) return false;
    for (int f = 0; f < rule.factors; ++f)
      if (!rule.output.contains(f) && !contains(sums, rule.letters[std::size_t(f)]) && !contains(whole, rule.letters[std::size_t(f)]))
        return false;
    return true;
  }();

  /// Whether `gradient`, if there is one, takes the operands, the result and its gradient, and returns a symbol per operand.
  template <std::size_t... I>
  static constexpr bool has_valid_gradient(std::index_sequence<I...>) {
    if constexpr (requires(symbol s) { Operation::gradient(one_symbol<I>(s)..., s, s); })
      return requires(symbol s, std::tuple<one_symbol<I>...> all) { all = Operation::gradient(one_symbol<I>(s)..., s, s); };
    else return !has_gradient;
  }

 private:
  /// Tests whether the operation has any member `gradient`: the name is then ambiguous between the two bases.
  struct other {
    void gradient();
  };
  struct nothing {};
  struct both : std::conditional_t<std::is_final_v<Operation>, nothing, Operation>, other {};
  static constexpr bool has_gradient = !requires { &both::gradient; };
};

/// The element type of an operation's tensors: T, or its `element<T>`.
template <class Operation, class T>
struct element_in {
  using type = T;
};
template <class Operation, class T>
  requires requires { typename Operation::template element<T>; }
struct element_in<Operation, T> {
  using type = typename Operation::template element<T>;
};

template <class T, class Operation, std::size_t... I>
void run_custom(const T* const* in, const shard_place* in_at, T* out, const shard_place& out_at) {
  using element = typename element_in<Operation, T>::type;
  Operation::run(local_shard<const element>{reinterpret_cast<const element*>(in[I]), in_at[I]}...,
                 local_shard<element>{reinterpret_cast<element*>(out), out_at});
}
template <class Operation, std::size_t... I>
constexpr void gradient_of_custom(const symbol* x, const symbol& y, const symbol& dy, symbol* dx) {
  const std::tuple<one_symbol<I>...> made = Operation::gradient(x[I]..., y, dy);
  ((dx[I] = std::get<I>(made)), ...);
}

template <class Operation, class Operands>
inline constexpr custom_operation custom_of{};
template <class Operation, std::size_t... I>
inline constexpr custom_operation custom_of<Operation, std::index_sequence<I...>> = [] {
  custom_operation made{.name = Operation::name,
                        .f32 = run_custom<float, Operation, I...>,
                        .f64 = run_custom<double, Operation, I...>,
                        .element_f32 = dtype_of<typename element_in<Operation, float>::type>,
                        .element_f64 = dtype_of<typename element_in<Operation, double>::type>,
                        .flops = custom_parts<Operation>::flops};
  if constexpr (requires(symbol s) { Operation::gradient(one_symbol<I>(s)..., s, s); }) {
    made.gradient = gradient_of_custom<Operation, I...>;
  }
  return made;
}();

constexpr void custom_gradient(differentiator& d, const node& n);
inline constexpr operation_rules custom_rules{.of = op::custom, .gradient = custom_gradient};

/// The gradient that the user's operation states.
constexpr void custom_gradient(differentiator& d, const node& n) {
  builder& b = d.owner();
  const symbol dy = d.gradient(n);
  const custom_operation& what = *n.attr.custom;
  if (!what.gradient) return b.fail(fault::not_differentiable, what.name);
  symbol operands[sharding_rule::most_in], gradients[sharding_rule::most_in];
  for (int i = 0; i < n.inputs; ++i) operands[i] = d.in(n, i);
  what.gradient(operands, d.out(n), dy, gradients);
  for (int i = 0; i < n.inputs && !b.failed(); ++i) {
    if (gradients[i].id < 0 || !d.wants(n, i)) continue;
    if (const int k = b.first_difference(gradients[i].get().dims, operands[i].get().dims); k < max_rank)
      b.fail(fault::dims_differ, what.name, "gradient", i, k);
    d.add(n.input(i), gradients[i]);
  }
}

/// op::custom with a rule that the caller makes. @see emit_custom
constexpr symbol emit_custom_node(const custom_operation& what, list_view<symbol> operands, const sharding_rule& rule, const dim_list& dims,
                                  dtype type) {
  builder& b = *operands[0].owner;
  std::array<std::int32_t, sharding_rule::most_in> ids{};
  for (std::size_t i = 0; i < operands.size(); ++i) ids[i] = operands[i].id;
  return {&b, b.add_node(b.use(custom_rules), list_view(ids.data(), operands.size()), rule, {.custom = &what}, {{dims, type}})};
}

/// op::custom.
template <class Operation>
constexpr symbol emit_custom(builder& b, const custom_operation& what, list_view<symbol> operands) {
  using parts = custom_parts<Operation>;
  const equation& e = parts::rule;
  if (parts::parsed.problem && !b.failed()) b.program.problem = parts::parsed.problem;
  sharding_rule rule;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!b.has(operands[0]) || !b.has(operands[i])) return b.nothing();
    const dtype type = operands[i].get().type, common = operands[0].get().type;
    if (type != common || (type != what.element_f32 && type != what.element_f64)) {
      const auto taken = element_set(only(what.element_f32) | only(what.element_f64));
      b.fail_type(Operation::name, int(i), type, i == 0 ? taken : only(common));
      return b.nothing();
    }
    rule.in[i] = e.operands[i];
    for (int d = 0; d < e.operands[i].size(); ++d)  // a diagonal: one axis cannot shard two dims
      if (e.operands[i].find(e.operands[i][d]) != d) rule.block(e.operands[i][d]);
  }
  const auto dim_of = dims_of_letters(b, operands, e, Operation::name);
  if (b.failed()) return b.nothing();
  rule.out[0] = e.output;
  for (int f = 0; f < e.factors; ++f)
    if (parts::contains(parts::whole, e.letters[std::size_t(f)]) || (!rule.out[0].contains(f) && !has_sums(operands[0].get().type)))
      rule.block(f);
  return emit_custom_node(what, operands, rule, output_dims(e, dim_of), operands[0].get().type);
}

}  // namespace detail

/// custom<Operation>(x, ...): a user-defined operation that works like the library's own. `Operation` is a type with the members
///   `name`: a std::string_view for plans and errors;
///   `rule`: the indices of operands and result, such as "BM,NM->BN"; letters are local to it;
///   `sums` (optional): contracted indices over which the results of shards add up: sharding them leaves a
///     partial sum;
///   `whole` (optional): indices that must not be sharded, because the kernel needs them complete;
///   `flops` (optional): floating-point operations per index of the rule, for prices;
///   `run(local_shard<const T> x, ..., local_shard<T> y)`: the kernel on a device, a static template for float and double;
///   `template <class T> using element = std::complex<T>` (optional): the element type of its tensors, and of `run`, instead of T;
///   `gradient(x, ..., y, dy)` (optional): static and constexpr, of symbols: a gradient per operand, as a std::tuple; a symbol if there is
///     one operand.
/// Propagation, partitioning, prices and all backends use its rule.
/// Shapes: as the rule says; one to six operands.
/// Communicates: as einsum: the reshards that the cheapest strategy needs, and the completion of partial sums.
/// Compile time: the rule; that each index which the result lacks is in `sums` or `whole`; ranks, dims and one element type.
/// Throws: the exceptions of `run`, on all processes.
/// @see local_shard, call_on_shards, check_shardings
template <class Operation, class... Symbols>
  requires(std::same_as<Symbols, symbol> && ...)
constexpr auto custom(here first, Symbols... rest) {  // auto: the assertions fire before the model is evaluated
  using parts = detail::custom_parts<Operation>;
  constexpr std::size_t given = 1 + sizeof...(rest);
  constexpr bool takes_these = bool(parts::parsed.problem) || parts::rule.count == int(given);
  constexpr bool names_its_letters = bool(parts::parsed.problem) || parts::names_its_letters;
  constexpr bool has_few = bool(parts::parsed.problem) || parts::rule.count < sharding_rule::most_in;
  static_assert(has_few, "gshard: a custom operation has one to six operands");
  static_assert(takes_these, "gshard: the rule of a custom operation has another number of operands than the call");
  static_assert(names_its_letters,
                "gshard: `sums` and `whole` of a custom operation have every index that its result lacks, and `sums` has no other");
  constexpr bool has_valid_gradient = parts::has_valid_gradient(std::make_index_sequence<given>());
  static_assert(!takes_these || has_valid_gradient,
                "gshard: gradient(x, ..., y, dy) of a custom operation returns a symbol per operand, as a std::tuple if there are several");
  const std::array<symbol, given> operands{first, rest...};
  if constexpr (has_few && takes_these && names_its_letters && has_valid_gradient)
    return detail::emit_custom<Operation>(*first.owner, detail::custom_of<Operation, std::make_index_sequence<given>>, operands);
  else return detail::refused(operands[0]);
}

}}  // namespace gshard::v0
