// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Einsum on tensors outside of programs.

#include <gshard/core/program/check.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/eager/eager_call.hpp>

#include <cstddef>
#include <utility>

namespace gshard { inline namespace v0 {

namespace detail {
template <fixed_string Equation>
inline constexpr auto einsum_model = [](auto&, auto... x) { return einsum<Equation>(x...); };

/// An equation for operands of these ranks, without "...".
template <fixed_string Equation, equation_form Form, int... Ranks>
struct equation_of_ranks {
  struct expanded {
    equation value;
    diagnostic problem;
  };
  static constexpr expanded result = [] {
    using parsed = parsed_equation<Equation, Form>;
    expanded r{parsed::value, parsed::problem};
    constexpr int ranks[]{Ranks...};
    if (!r.problem && r.value.has_ellipsis && r.value.count == int(sizeof...(Ranks)))
      r.value = without_ellipses(r.value, ranks, Equation.view(), r.problem);
    return r;
  }();
};

template <auto Model, fixed_string Equation, class Parsed, class... T, class... Specs, std::size_t... I>
auto run_equation(std::index_sequence<I...>, const tensor<T, Specs>&... x) {
  constexpr equation e = Parsed::result.value;
  constexpr bool fits = ((e.operand(int(I)).size() == Specs::rank) && ...);
  static_assert((holds<e.operand(int(I)).size() == Specs::rank, in_equation<Equation>, operand_number<int(I)>,
                       expected_rank<e.operand(int(I)).size()>, actual_rank<Specs::rank>> &&
                 ...),
                "gshard: a tensor has another number of dims than its partition spec, equation or operation expects");
  if constexpr (fits) return run_verb<Model, letters_of_factors<e.operands[I]>()...>(Equation.view(), x...);
  else return refused_output();
}

/// Runs a verb whose operands have the dims of an equation.
template <auto Model, fixed_string Equation, equation_form Form = equation_form::letters, class... T, class... Specs>
auto run_equation(const tensor<T, Specs>&... x) {
  using parsed = equation_of_ranks<Equation, Form, Specs::rank...>;
  constexpr diagnostic problem = parsed::result.problem;
  constexpr int count = parsed::result.value.count;
  static_assert(check_program<problem.what, problem, mesh<>>());
  constexpr bool takes_these = problem || count == int(sizeof...(T));
  static_assert(holds<takes_these, in_equation<Equation>, operands_in_equation<count>, operands_given<int(sizeof...(T))>>,
                "gshard: the einsum equation has another number of operands than the call");
  if constexpr (!problem && takes_these) return run_equation<Model, Equation, parsed>(std::index_sequence_for<T...>{}, x...);
  else return refused_output();
}
}  // namespace detail

/// einsum<"BM,MH->BH">(x, w) on tensors. The type of the result holds its sharding: an axis that shards a contracted index leaves
/// `partial<axis>`, which `reshard` completes.
/// Shapes: as the equation says.
/// Communicates: nothing if the operands shard a common index alike; otherwise the cheapest reshards of operands.
/// Compile time: the equation, ranks, and that operands are complete.
/// Throws: `gshard::error` if one letter has two extents.
/// @see core/trace/einsum.hpp, reshard
template <fixed_string Equation, class... T, class... Specs>
  requires(sizeof...(T) > 0)
auto einsum(const tensor<T, Specs>&... x) {
  return detail::run_equation<detail::einsum_model<Equation>, Equation, equation_form::numpy>(x...);
}

}}  // namespace gshard::v0
