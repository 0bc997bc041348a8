// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Argument checks of verbs, so that a wrong call gives one readable error.
//
// Without these checks, compilers list all overloads. Next to each verb, an overload with a static_assert takes the calls that do not fit.
// Correct calls instantiate nothing of it.

#include <gshard/core/base/dual.hpp>
#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/trace/builder.hpp>

#include <cstddef>
#include <initializer_list>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 { namespace detail {

/// The result of a call that a static_assert has refused. Verbs accept it silently, so that no other error follows.
struct refused_tensor : symbol {};
template <class G>
inline constexpr bool is_refused = std::is_base_of_v<refused_tensor, G>;
template <template <class...> class Several, class... G>
inline constexpr bool is_refused<Several<G...>> = (is_refused<G> || ...);

/// A parameter that is a function or function object.
struct function {};
/// A parameter that is a function object without captures.
struct plain_function {};
/// A parameter that is a floating-point number or a dual one.
struct a_number {};
/// A parameter that is a list of T or an array with a name.
template <class T>
struct list_of {};

template <class G>
inline constexpr bool is_symbol = std::is_base_of_v<symbol, G> && !is_refused<G>;

/// An integer, an enumerator, or an object that converts to one.
template <class G>
inline constexpr bool is_integer = std::is_convertible_v<const G&, int> && !std::is_floating_point_v<G> && !std::is_base_of_v<symbol, G>;

/// True if an argument of type `G` fits a parameter of type `P`. Numbers are strict: a dim or a count is an integer.
template <class P, class G>
inline constexpr bool takes = std::is_convertible_v<const G&, P>;
template <class G>
inline constexpr bool takes<symbol, G> = is_symbol<G>;
template <class G>
inline constexpr bool takes<int, G> = is_integer<G>;
template <class G>
inline constexpr bool takes<bool, G> = is_integer<G>;
template <class G>
inline constexpr bool takes<double, G> = std::is_arithmetic_v<G>;
template <class G>
inline constexpr bool takes<a_number, G> = std::is_floating_point_v<G>;
template <class T>
inline constexpr bool takes<a_number, dual<T>> = true;
template <class G>
inline constexpr bool takes<function, G> = std::is_class_v<G> && !std::is_base_of_v<symbol, G>;
template <class G>
inline constexpr bool takes<plain_function, G> = std::is_empty_v<G>;
template <class R, class... A>
inline constexpr bool takes<function, R(A...)> = true;
template <class R, class... A>
inline constexpr bool takes<function, R (*)(A...)> = true;
template <class T, class G>
inline constexpr bool takes<list_of<T>, G> = requires(const G& g) { static_cast<const T*>(g.data()); };
template <class T, std::size_t N>
inline constexpr bool takes<list_of<T>, T[N]> = true;
template <class T>
inline constexpr bool takes<list_of<T>, std::initializer_list<T>> = true;

template <class... T>
struct types {};
/// The remaining parameters have defaults.
template <class Parameters, class Given>
inline constexpr bool takes_all = true;
template <class P, class... Parameters, class G, class... Given>
inline constexpr bool takes_all<types<P, Parameters...>, types<G, Given...>> =
    takes<P, G> && takes_all<types<Parameters...>, types<Given...>>;

/// A verb with these parameters. The first `Least` of them have no default.
template <std::size_t Least, class... Parameters>
struct call {
  template <class... Given>
  static constexpr bool fits =
      sizeof...(Given) >= Least && sizeof...(Given) <= sizeof...(Parameters) && takes_all<types<Parameters...>, types<Given...>>;
};
/// A verb of `Least` to `Most` tensors.
template <std::size_t Least, std::size_t Most = Least>
struct tensors {
  template <class... Given>
  static constexpr bool fits = sizeof...(Given) >= Least && sizeof...(Given) <= Most && (is_symbol<Given> && ...);
};
/// The same for a verb that also takes tensors outside of programs, if all operands are such tensors.
template <std::size_t Least, std::size_t Most>
struct tensors_of_any_kind {
  template <class... Given>
  static constexpr bool fits = tensors<Least, Most>::template fits<Given...> ||
                               (sizeof...(Given) >= Least && (requires { typename Given::layout_type; } && ...));
};
template <class First, std::size_t Most, class... Given>
inline constexpr bool leads_tensors = tensors<1, Most>::template fits<Given...>;
template <class P, class... First, std::size_t Most>
inline constexpr bool leads_tensors<types<P, First...>, Most> = false;
template <class P, class... First, std::size_t Most, class G, class... Given>
inline constexpr bool leads_tensors<types<P, First...>, Most, G, Given...> = takes<P, G> && leads_tensors<types<First...>, Most, Given...>;
/// A verb with the parameters `First`, followed by one to `Most` tensors of a program.
template <std::size_t Most, class... First>
struct before_tensors {
  template <class... Given>
  static constexpr bool fits = leads_tensors<types<First...>, Most, Given...>;
};

/// A symbol for each index of a pack.
template <std::size_t>
using one_symbol = symbol;

/// Adds an overload that makes a call ambiguous exactly if `F` accepts the arguments. Overload resolution then tests this without
/// instantiating the body of F.
template <class F>
struct ambiguity_probe : F {
  struct chosen {};
  using F::operator();
  chosen operator()(...);
};
/// True if `F` takes arguments of these types, at least one. Its result type is not deduced, so a mistake in its body is not found here.
template <class F, class... Arguments>
inline constexpr bool is_called_with = [] {
  if constexpr (!std::is_class_v<F> || std::is_final_v<F>) {
    return std::is_invocable_v<F, Arguments...>;
  } else {
    using chosen = typename ambiguity_probe<F>::chosen;
    return !requires(ambiguity_probe<F>& f) { requires std::is_same_v<decltype(f(std::declval<Arguments>()...)), chosen>; };
  }
}();

/// The condition of the static_assert about a wrong call. Compilers print its template arguments: the types of the call's arguments.
template <class... Given>
inline constexpr bool accepts = (is_refused<Given> || ...);

/// True if a verb with template arguments, such as `argmax<"AB->A">`, is called without them.
template <fixed_string Text>
inline constexpr bool left_out = Text.view().empty();

constexpr builder make_failed_program() {
  builder b;
  b.program.problem.what = fault::refused_call;
  b.program.windows = list<window>();
  b.keeps_place = true;
  return b;
}
/// The program of a refused call that names no program, such as `softmax(3)`. Verbs add nothing to it.
inline constexpr builder failed_program = make_failed_program();

constexpr void find_program(builder*& found, const symbol& s) {
  if (s.owner != &failed_program) found = s.owner;
}
template <class Other>
constexpr void find_program(builder*& found, const Other& given) {
  if constexpr (requires { found = &given.owner(); }) found = &given.owner();
}
template <class... Given>
constexpr refused_tensor refused(const Given&... given) {
  auto* program = const_cast<builder*>(&failed_program);
  (find_program(program, given), ...);
  program->fail(fault::refused_call, {});
  return {program->nothing()};
}

template <class... Given>
concept with_tensor = (std::is_base_of_v<symbol, Given> || ...);
template <class... Given>
concept compares =
    call<2, symbol, symbol>::fits<Given...> || call<2, symbol, double>::fits<Given...> || call<2, double, symbol>::fits<Given...>;

/// True if template arguments are integers that an Int holds, or flags.
template <class Int, auto... Numbers>
inline constexpr bool are_numbers = [] {
  [[maybe_unused]] const auto is_int = [](auto n) {
    if constexpr (std::is_same_v<decltype(n), bool>) return true;
    else if constexpr (std::is_integral_v<decltype(n)>) return std::in_range<Int>(n);
    else return false;
  };
  return (is_int(Numbers) && ...);
}();

/// An element of a list in braces.
struct anything {
  template <class... T>
  constexpr anything(const T&...) {}
};

}}}  // namespace gshard::v0::detail

/// Refuses the calls of a verb that do not fit, with one sentence. `calls_that_fit`: a condition on the types `Given...`, in parentheses.
#define GSHARD_TAKES(verb, calls_that_fit, sentence)                 \
  template <class... Given>                                          \
    requires(!(calls_that_fit))                                      \
  constexpr auto verb(const Given&... given) {                       \
    static_assert(detail::accepts<Given...>, "gshard: " sentence);   \
    return detail::refused(given...);                                \
  }

/// The same for a verb that also takes its numbers as template arguments, `least` to `most` of them, each a `number`. `tensors_that_fit`
/// are then its only arguments.
#define GSHARD_TAKES_NUMBERS(verb, calls_that_fit, least, most, number, tensors_that_fit, sentence)                                  \
  template <auto... Numbers, class... Given>                                                                                       \
    requires(sizeof...(Numbers) == 0 ? !(calls_that_fit)                                                                           \
                                     : sizeof...(Numbers) < least || sizeof...(Numbers) > most ||                                \
                                           !detail::are_numbers<number, Numbers...> || !(tensors_that_fit))                        \
  constexpr auto verb(const Given&... given) {                                                                                     \
    static_assert(detail::accepts<Given...>, "gshard: " sentence);                                                                 \
    return detail::refused(given...);                                                                                              \
  }

/// The same for a reduction with and without an equation.
#define GSHARD_TAKES_REDUCTION(verb)                                                                                              \
  template <fixed_string Equation = "", class... Given>                                                                           \
    requires(!detail::tensors<1>::fits<Given...> &&                                                                               \
             !(detail::left_out<Equation> && detail::call<2, std::string_view, symbol>::fits<Given...>))                          \
  constexpr auto verb(const Given&... given) {                                                                                    \
    static_assert(detail::accepts<Given...>, "gshard: " #verb "(x) and " #verb "<\"AB->A\">(x) take one tensor of a program");    \
    return detail::refused(given...);                                                                                             \
  }
