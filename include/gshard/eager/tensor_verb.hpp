// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Makes a verb on tensors outside of programs from the verb of programs: one row per verb.

#include <gshard/core/trace/call.hpp>
#include <gshard/eager/einsum.hpp>
#include <gshard/eager/eager_call.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/tensor/tensor.hpp>
#include <gshard/ops/along/sort.hpp>
#include <gshard/ops/index/gather.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 {

/// Sorted elements with their original indices: `sorted` on tensors.
template <class Values, class Ids>
struct sorted_tensors {
  Values values;
  Ids ids;  // int32
};

namespace detail {

// The operands of a verb.

struct a_tensor {};
struct a_start {};
/// A start index: an integer, or a scalar.
template <class Index>
concept start_index = std::integral<Index> || (distributed_tensor<Index> && Index::static_rank == 0);
template <class G>
inline constexpr bool takes<a_tensor, G> = distributed_tensor<G>;
template <class G>
inline constexpr bool takes<a_start, G> = start_index<G>;
using one_tensor = call<1, a_tensor>;
using two_tensors = call<2, a_tensor, a_tensor>;
using three_tensors = call<3, a_tensor, a_tensor, a_tensor>;
using tensor_and_start = call<2, a_tensor, a_start>;
using tensors_and_start = call<3, a_tensor, a_tensor, a_start>;
struct any_tensors {
  template <class... Given>
  static constexpr bool fits = sizeof...(Given) <= sharding_rule::most_in && (distributed_tensor<Given> && ...);
};

// How the dims of the operands match: the factors of each operand, by the ranks of all and the numbers of the verb. If they do not fit, the
// factors are arbitrary, and the verb reports it.

using operand_factors = std::array<short_list, sharding_rule::most_in>;

/// Dim d of an operand is dim d of all others.
constexpr operand_factors by_position(std::span<const int> ranks, std::span<const std::int64_t>) {
  operand_factors f{};
  for (std::size_t i = 0; i < ranks.size(); ++i) f[i] = counting(ranks[i]);
  return f;
}
/// Other operands have the last dim of the first one.
constexpr operand_factors by_last_dim(std::span<const int> ranks, std::span<const std::int64_t> numbers) {
  operand_factors f = by_position(ranks, numbers);
  for (std::size_t i = 1; i < ranks.size() && ranks[0] > 0; ++i) f[i] = counting(ranks[i], ranks[0] - 1);
  return f;
}
/// By position, but each operand except the first one has its own extent of the dim that is the verb's first number.
constexpr operand_factors with_own_dim(std::span<const int> ranks, std::span<const std::int64_t> numbers) {
  operand_factors f = by_position(ranks, numbers);
  const int dim = numbers.empty() ? -1 : int(numbers[0]);
  for (std::size_t i = 1; i < ranks.size(); ++i)
    if (dim >= 0 && dim < ranks[i]) f[i].set(dim, max_rank + int(i));
  return f;
}
/// A table, ids of its rows, and rows, along the dim and for the batch dims that are the verb's numbers.
constexpr operand_factors by_rows(std::span<const int> ranks, std::span<const std::int64_t> numbers) {
  operand_factors f = by_position(ranks, numbers);
  const int at = numbers.empty() ? 0 : int(numbers[0]), batch = numbers.size() < 2 ? 0 : int(numbers[1]);
  if (at < 0 || at >= ranks[0] || batch < 0 || batch > at || batch > ranks[1] || ranks[0] - 1 + ranks[1] - batch > max_rank) return f;
  const row_factors along = rows_along(at, ranks[1], ranks[0], batch);
  f[0] = along.table;
  f[1] = along.ids;
  if (ranks.size() > 2 && along.rows.size() == ranks[2]) f[2] = along.rows;
  return f;
}

/// A number as a tensor of T. If T is an integer type that cannot hold the number, the call on the cluster fails on every process.
template <class T, class Number>
tensor<T, spec<>> scalar_on(std::string_view operation, const any_cluster& on, Number number) {
  if constexpr (std::is_integral_v<T>) {
    constexpr bool are_alike = std::is_integral_v<Number> && std::is_same_v<T, bool> == std::is_same_v<Number, bool>;
    static_assert(are_alike, "gshard: tensors of integers are combined with integers, masks with true and false");
    if constexpr (are_alike && !std::is_same_v<T, bool>)
      if (!std::in_range<T>(number))  // begin throws; processes with another number throw in their call of the operation
        on.backend().begin({}, std::string(operation) + ": " + std::to_string(number) + " is no " + std::string(cpp_name(dtype_of<T>)));
  }
  tensor<T, spec<>> t(on, {});
  for_each_local_shard(t, [&](shard_view<T> s) { *s.data = T(number); });
  tensor_origin origin = tensor_access::origin(t);
  origin.constant = number_text(number);
  tensor_access::set_origin(t, origin);
  return t;
}
/// An operand of a verb: a tensor, or a start index as a scalar.
template <class T, class Spec>
const tensor<T, Spec>& operand_on(std::string_view, const any_cluster&, const tensor<T, Spec>& x) {
  return x;
}
template <std::integral Index>
tensor<std::int32_t, spec<>> operand_on(std::string_view verb, const any_cluster& on, Index start) {
  return scalar_on<std::int32_t>(verb, on, start);
}

constexpr symbol outputs_of(symbol s) { return s; }
constexpr std::tuple<symbol, symbol> outputs_of(const sorted& s) { return {s.values, s.ids}; }
template <class Outputs>
auto result_of(const symbol*, Outputs outputs) {
  return outputs;
}
template <class Values, class Ids>
auto result_of(const sorted*, std::tuple<Values, Ids> outputs) {
  return sorted_tensors<Values, Ids>{std::move(std::get<0>(outputs)), std::move(std::get<1>(outputs))};
}
template <class Refused>
Refused result_of(const sorted*, const Refused& refused) {
  return refused;
}

/// Plans and runs `Verb`, a call of a verb of programs. `Numbers`: the numbers of the verb.
template <class Verb, auto Match, auto... Numbers, std::size_t... I, class... Operands>
auto run_tensor_verb(std::index_sequence<I...>, std::string_view name, const Operands&... x) {
  static constexpr operand_factors factors = [] {
    const std::array<int, sizeof...(I)> ranks{Operands::static_rank...};
    const std::array<std::int64_t, sizeof...(Numbers)> numbers{std::int64_t(Numbers)...};
    return Match(ranks, numbers);
  }();
  constexpr auto model = [](auto&, auto... s) { return outputs_of(Verb()(s...)); };
  using result = decltype(Verb()(std::declval<one_symbol<I>>()...));
  return result_of(static_cast<const result*>(nullptr), run_verb<model, letters_of_factors<factors[I]>()...>(name, x...));
}

}  // namespace detail
}}  // namespace gshard::v0

/// `verb_of_program`: a type whose calls are those of the verb, with numbers as template arguments.
#define GSHARD_VERB_OF_PROGRAM(verb)                             \
  namespace detail {                                             \
  template <auto... Numbers>                                     \
  struct verb##_of_program {                                     \
    template <class... S>                                        \
    constexpr auto operator()(S... x) const {                    \
      if constexpr (sizeof...(Numbers) == 0) return verb(x...);  \
      else return verb<Numbers...>(x...);                        \
    }                                                            \
  };                                                             \
  }

/// A verb on tensors: `verb(x, ...)`, or `verb<1>(x, ...)` if it has numbers. `least`, `most`: the count of its numbers. `operands`: the
/// tensors that it takes. `match`: how their dims match. `call`: the sentence about other calls whose first argument is a tensor.
#define GSHARD_ON_TENSORS(verb, least, most, operands, match, call)                                                                       \
  GSHARD_VERB_OF_PROGRAM(verb)                                                                                                            \
  template <auto... Numbers, class T, class Spec, class... More>                                                                          \
  auto verb(const tensor<T, Spec>& x, const More&... more) {                                                                              \
    if constexpr (sizeof...(Numbers) >= least && sizeof...(Numbers) <= most && detail::operands::fits<tensor<T, Spec>, More...>) {        \
      return detail::run_tensor_verb<detail::verb##_of_program<Numbers...>, detail::match, Numbers...>(                                   \
          std::make_index_sequence<1 + sizeof...(More)>(), #verb, x, detail::operand_on(#verb, x.cluster(), more)...);                    \
    } else {                                                                                                                              \
      static_assert(detail::accepts<tensor<T, Spec>, More...>, "gshard: outside of programs, " call);                                     \
      return detail::refused_tensor();                                                                                                    \
    }                                                                                                                                     \
  }

/// A reduction on tensors over the indices that the output of an equation lacks: `verb<"AB->A">(x)`.
#define GSHARD_ON_TENSORS_BY_EQUATION(verb)                                                                                        \
  namespace detail {                                                                                                               \
  template <fixed_string Equation>                                                                                                 \
  inline constexpr auto verb##_by_equation = [](auto&, auto x) { return verb<Equation>(x); };                                      \
  }                                                                                                                                \
  template <fixed_string Equation, class T, class Spec>                                                                            \
  auto verb(const tensor<T, Spec>& x) {                                                                                            \
    return detail::run_equation<detail::verb##_by_equation<Equation>, Equation>(x);                                                \
  }                                                                                                                                \
  template <class T, class Spec, class... More>                                                                                    \
    requires(sizeof...(More) > 0)                                                                                                  \
  auto verb(const tensor<T, Spec>&, const More&...) {                                                                              \
    static_assert(detail::accepts<tensor<T, Spec>, More...>, "gshard: outside of programs, " #verb                                 \
                  "<\"AB->A\">(x) takes an equation as template argument, and one gshard::tensor");                                \
    return detail::refused_tensor();                                                                                               \
  }

/// The same, and over all dims without an equation: `verb(x)`.
#define GSHARD_ON_TENSORS_OVER_ALL(verb)                                                                                     \
  GSHARD_VERB_OF_PROGRAM(verb)                                                                                               \
  template <class T, class Spec>                                                                                             \
  auto verb(const tensor<T, Spec>& x) {                                                                                      \
    return detail::run_tensor_verb<detail::verb##_of_program<>, detail::by_position>(std::make_index_sequence<1>(), #verb, x); \
  }                                                                                                                          \
  GSHARD_ON_TENSORS_BY_EQUATION(verb)
