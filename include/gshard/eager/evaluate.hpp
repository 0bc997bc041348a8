// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Runs a function of the verbs of programs on tensors outside of programs: evaluate.

#include <gshard/core/trace/call.hpp>
#include <gshard/eager/eager_call.hpp>

#include <string_view>
#include <type_traits>

namespace gshard { inline namespace v0 {

namespace detail {
template <class F>
struct function_model {
  static constexpr bool calls_user = true;
  constexpr auto operator()(auto&, auto... x) const { return F{}(x...); }
};
template <class F>
inline constexpr function_model<F> evaluate_model{};

template <class F>
concept function_of_symbols = std::is_class_v<F> && std::is_empty_v<F> && std::is_default_constructible_v<F>;
}  // namespace detail

/// evaluate<"NM", "I">([](auto table, auto ids) { return gs::gather(table, ids); }, table, ids): plans and runs a function of verbs of
/// programs on tensors. The letters name the dims of each tensor. Without letters, dims match by position, as in map. The function
/// has no captures. It returns a tensor, or a std::tuple or std::array of tensors. The results have the shardings that the planner chooses.
/// Results may be partial sums, which `reshard` completes.
/// Shapes: as the function says. Each letter has one extent.
/// Communicates: as the verbs do.
/// Compile time: the checks of the verbs; as many letters as dims; that operands are complete.
/// Throws: `gshard::error` if one letter has two extents; the errors of the verbs.
/// @see einsum, map, reshard
template <fixed_string... Letters, class F, class... T, class... Specs>
  requires(detail::function_of_symbols<F> && sizeof...(T) > 0)
auto evaluate(F, const tensor<T, Specs>&... x) {
  if constexpr (sizeof...(Letters) == 0) {
    return detail::run_verb<detail::evaluate_model<F>>("evaluate", x...);
  } else {
    constexpr bool takes_these = sizeof...(Letters) == sizeof...(T);
    static_assert(holds<takes_these, operands_in_equation<int(sizeof...(Letters))>, operands_given<int(sizeof...(T))>>,
                  "gshard: evaluate<\"AB\", \"BC\">(f, x, y) takes the letters of the dims of each tensor, or no letters");
    if constexpr (takes_these) return detail::run_verb<detail::evaluate_model<F>, Letters...>("evaluate", x...);
    else return detail::refused_output();
  }
}

}}  // namespace gshard::v0
