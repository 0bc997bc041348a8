// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Broadcast on tensors outside of programs: repeats a tensor along the dims of other tensors.

#include <gshard/core/program/check.hpp>
#include <gshard/core/trace/broadcast.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/eager/eager_call.hpp>

#include <array>
#include <cstddef>
#include <utility>

namespace gshard { inline namespace v0 {

namespace detail {

/// The sharding of a broadcast's result: that of the first operand. A dim that it does not shard is sharded as in the first other operand
/// that shards it over free axes. Therefore nothing is communicated.
template <fixed_string Equation, class... Specs>
struct broadcast_layout {
  using mesh = mesh_of<Specs...>;
  static constexpr sharding value = [] {
    const equation& e = parsed_equation<Equation>::value;
    sharding made = sharding::replicated(e.output.size());
    int i = 0;
    const auto lend = [&](const named_sharding& named) {
      diagnostic problem;
      const sharding given = resolve(named, mesh::shape, "broadcast", problem);
      const short_list& letters = e.operand(i++);
      for (int d = 0; d < letters.size(); ++d)
        if (const int to = e.output.find(letters[d]); to >= 0 && made[to].empty() && !(given[d].mask() & made.used()))
          made[to] = given[d];
    };
    (lend(Specs::named), ...);
    return made;
  }();
};

template <fixed_string Equation, class Layout>
inline constexpr auto broadcast_model = [](auto& m, auto x) {
  constexpr equation e = parsed_equation<Equation>::value;
  builder& b = m.owner();
  const dim_list dims = b.dims_of(letters_of_factors<e.output>().view(), "broadcast");
  if (!require_real(b, Equation.view(), {x})) return b.nothing();
  return emit_annotate(emit_broadcast(x, e.operands[0], e.output, dims), Layout::value);
};

template <fixed_string Equation, std::size_t... I, class T, class Spec, class... Like>
auto eager_broadcast(std::index_sequence<I...>, const tensor<T, Spec>& x, const Like&... like) {
  constexpr equation e = parsed_equation<Equation>::value;
  constexpr std::array<int, sizeof...(I)> ranks{Spec::rank, Like::layout_type::rank...};
  constexpr bool fits = ((e.operands[I].size() == ranks[I]) && ...);
  static_assert((holds<e.operands[I].size() == ranks[I], in_equation<Equation>, operand_number<int(I)>,
                       expected_rank<e.operands[I].size()>, actual_rank<ranks[I]>> &&
                 ...),
                "gshard: a tensor has another number of dims than its partition spec, equation or operation expects");
  if constexpr (fits) {
    using layout = broadcast_layout<Equation, Spec, typename Like::layout_type...>;
    using compiled = program<broadcast_model<Equation, layout>, typename layout::mesh, in<letters_of_factors<e.operands[0]>(), Spec, T>>;
    const auto operands = [](const auto&... t) {
      return std::array{operand_of(letters_of<parsed_equation<Equation>::value.operands[I]>.view(), t)...};
    };
    return run_operation<compiled>(Equation.view(), operands(x, like...), std::array<const untyped_tensor*, 1>{&x});
  } else {
    return refused_output();
  }
}

/// The diagnostic of an equation that is not a broadcast.
template <fixed_string Equation>
inline constexpr diagnostic problem_of_broadcast = [] {
  const equation& e = parsed_equation<Equation>::value;
  diagnostic problem = parsed_equation<Equation>::problem;
  if (const int d = dim_not_kept(e); d >= 0) problem.report(fault::index_not_kept, Equation.view(), letter_of(e, e.operands[0][d]), d);
  return problem;
}();

}  // namespace detail

/// broadcast<"Q,QK->QK">(x, like)[q, k] = x[q] on tensors. `like` and further tensors give the extents of their dims. Their elements are
/// not read. The result keeps the axes that shard x. Other dims are sharded as in the first operand that has them, over axes that x does
/// not use.
/// Shapes: as the equation says.
/// Communicates: nothing.
/// Compile time: the equation and ranks; that x is complete.
/// Throws: `gshard::error` if one letter has two extents.
/// @see core/trace/broadcast.hpp
template <fixed_string Equation, class T, class Spec, distributed_tensor... Like>
auto broadcast(const tensor<T, Spec>& x, const Like&... like) {
  constexpr diagnostic problem = detail::problem_of_broadcast<Equation>;
  constexpr int count = detail::parsed_equation<Equation>::value.count;
  constexpr bool takes_these = problem || count == 1 + int(sizeof...(Like));
  static_assert(detail::check_program<problem.what, problem, mesh<>>());
  static_assert(holds<takes_these, in_equation<Equation>, operands_in_equation<count>, operands_given<1 + int(sizeof...(Like))>>,
                "gshard: the einsum equation has another number of operands than the call");
  detail::require_complete<tensor<T, Spec>>();
  static_assert(holds<Spec::named.order.empty(), actual_type<Spec>>,
                "gshard: operations on tensors outside of programs do not take an order of the devices (device_order)");
  if constexpr (!problem && takes_these && detail::all_complete<tensor<T, Spec>> && Spec::named.order.empty())
    return detail::eager_broadcast<Equation>(std::make_index_sequence<1 + sizeof...(Like)>{}, x, like...);
  else return detail::refused_output();
}

}}  // namespace gshard::v0
