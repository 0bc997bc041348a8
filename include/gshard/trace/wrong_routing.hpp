// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Compile-time errors for wrong calls of the verbs that route tokens to experts. @see trace/wrong_math.hpp, which explains these overloads

#include <gshard/base/fixed_string.hpp>
#include <gshard/base/list.hpp>
#include <gshard/ir/spec.hpp>
#include <gshard/trace/builder.hpp>
#include <gshard/trace/call.hpp>
#include <gshard/trace/chunks.hpp>
#include <gshard/trace/dropless.hpp>
#include <gshard/trace/expert_groups.hpp>
#include <gshard/trace/expert_replicas.hpp>
#include <gshard/trace/gating.hpp>
#include <gshard/trace/parameter_scope.hpp>

#include <initializer_list>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace detail {
constexpr gating_result refused_gating(symbol none) { return {none, none, none, none, none, none}; }

/// True if these are the arguments of replica_param.
template <class... Given>
inline constexpr bool declares_for_replicas = false;
template <class M, class Replicas, class Name, class Letters, class... Entries, class Start>
inline constexpr bool declares_for_replicas<M, Replicas, Name, Letters, spec<Entries...>, Start> =
    call<2, parameter_scope, symbol>::fits<M, Replicas> && declares<Name, Letters, spec<Entries...>, Start>;
}  // namespace detail

template <class... Given>
  requires(!detail::call<1, symbol, capacity, second_expert>::fits<Given...> &&
           !detail::call<2, symbol, symbol, capacity, second_expert>::fits<Given...>)
constexpr auto top2_gating(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: top2_gating(gates, mask, capacity{2}, second) takes gates and maybe a mask, tensors of a program, and settings");
  return detail::refused_gating(detail::refused(given...));
}
template <class... Given>
  requires(!detail::call<1, symbol, gating_options>::fits<Given...> && !detail::call<2, symbol, symbol, gating_options>::fits<Given...>)
constexpr auto top_k_gating(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: top_k_gating(gates, mask, {.k = 8}) takes gates and maybe a mask, tensors of a program, and settings");
  return detail::refused_gating(detail::refused(given...));
}
template <class... Given>
  requires(!detail::call<1, symbol, expert_choice_options>::fits<Given...> &&
           !detail::call<2, symbol, symbol, expert_choice_options>::fits<Given...>)
constexpr auto expert_choice_gating(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: expert_choice_gating(gates, mask, {}) takes gates and maybe a mask, tensors of a program, and settings");
  return detail::refused_gating(detail::refused(given...));
}
template <class... Given>
  requires(!detail::call<3, gating_result, int, int>::fits<Given...>)
constexpr auto chunk_of(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: chunk_of(gating, i, n) takes the result of a gating and two integers");
  return detail::refused_gating(detail::refused(given...));
}
template <class... Given>
  requires(!detail::call<2, symbol, int>::fits<Given...> && !detail::call<2, gating_result, int>::fits<Given...>)
constexpr auto chunks_of_token_groups(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: chunks_of_token_groups(x, n) takes a tensor of a program, or the result of a gating, and an integer");
  return list<symbol>{detail::refused(given...)};
}
template <class... Given>
  requires(!detail::call<1, detail::list_of<symbol>>::fits<Given...>)
constexpr auto join_token_groups(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: join_token_groups({a, b, ...}) takes a list of tensors of a program");
  return detail::refused(given...);
}
template <class... Given>
constexpr auto join_token_groups(std::initializer_list<detail::anything>, const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: join_token_groups({a, b, ...}) takes a list of tensors of a program");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<3, parameter_scope, std::string_view, std::string_view>::fits<Given...>)
constexpr auto replicas_of_experts(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: replicas_of_experts(m, \"R\", \"E\") takes the first argument of the model and the letters of two dims");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<5, parameter_scope, symbol, std::string_view, std::string_view, init>::fits<Given...> &&
           !detail::declares_for_replicas<Given...>)
constexpr auto replica_param(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: replica_param(m, expert_of, name, \"R@expert,M,F\", init::zeros()) takes the first argument of the model, the "
                "result of replicas_of_experts, two texts, maybe a spec, and an initializer");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<2, gating_result, symbol, capacity>::fits<Given...>)
constexpr auto send_to_replicas(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: send_to_replicas(gating, expert_of, capacity{2}) takes the result of a gating, that of "
                                           "replicas_of_experts, and a capacity");
  return detail::refused_gating(detail::refused(given...));
}
template <fixed_string Axis = "", class... Given>
  requires(!detail::call<3, gating_result, symbol, int, capacity>::fits<Given...>)
constexpr auto send_to_expert_groups(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: send_to_expert_groups<\"x\">(gating, x, 4, capacity{4}) takes the result of a gating, "
                                           "a tensor of a program, a number and a capacity");
  const symbol refused = detail::refused(given...);
  return expert_group_routing{refused, refused, refused, refused, refused};
}
template <class... Given>
  requires(!detail::call<2, expert_group_routing, symbol>::fits<Given...>)
constexpr auto combine_from_groups(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: combine_from_groups(groups, h) takes the result of send_to_expert_groups and a tensor of a program");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<2, expert_group_routing, symbol>::fits<Given...>)
constexpr auto sum_in_groups(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: sum_in_groups(groups, h) takes the result of send_to_expert_groups and a tensor of a program");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<2, expert_group_routing, symbol>::fits<Given...>)
constexpr auto combine_groups(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: combine_groups(groups, sums) takes the result of send_to_expert_groups and a tensor of a program");
  return detail::refused(given...);
}
template <fixed_string Axis = "", class... Given>
  requires(!detail::call<3, gating_result, symbol, int, capacity>::fits<Given...>)
constexpr auto send_rows(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: send_rows<\"x\">(gating, x, 4, capacity{4}) takes the result of a gating, a tensor of a program, a number and a "
                "capacity");
  const symbol refused = detail::refused(given...);
  return expert_row_routing{refused, refused, refused, refused, refused};
}
template <class... Given>
  requires(!detail::call<3, expert_row_routing, symbol, symbol>::fits<Given...>)
constexpr auto grouped_product(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: grouped_product(routing, x, w) takes the result of send_rows and two tensors of a program");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<3, expert_row_routing, symbol, symbol>::fits<Given...>)
constexpr auto add_to_rows(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: add_to_rows(routing, x, bias) takes the result of send_rows and two tensors of a program");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<2, expert_row_routing, symbol>::fits<Given...>)
constexpr auto combine_rows(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: combine_rows(routing, h) takes the result of send_rows and a tensor of a program");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<5, parameter_scope, expert_row_routing, std::string_view, std::string_view, init>::fits<Given...> &&
           !detail::declares_for_experts<Given...>)
constexpr auto expert_param(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: expert_param(m, routing, name, \"MF\", init::zeros()) takes the first argument of the model, the result of "
                "send_rows, two texts, maybe a spec, and an initializer");
  return detail::refused(given...);
}

}}  // namespace gshard::v0
