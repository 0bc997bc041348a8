// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/trace/call.hpp>

#include <array>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::here, gs::symbol;
using namespace gs::detail;
using tracing::input;

namespace {

// Parameters: numbers are strict, and omitted ones have a default.
using norm = gs::detail::call<3, symbol, symbol, symbol, double>;
static_assert(norm::fits<symbol, symbol, symbol> && norm::fits<here, symbol, symbol, float> && norm::fits<symbol, symbol, symbol, int>);
static_assert(!norm::fits<symbol> && !norm::fits<symbol, symbol, symbol, double, double> && !norm::fits<double, symbol, symbol>);
static_assert(!norm::fits<symbol, symbol, symbol, symbol> && !norm::fits<symbol, symbol, symbol, bool*>);
static_assert(call<2, symbol, int>::fits<symbol, long> && !call<2, symbol, int>::fits<symbol, double>);
enum dim { batch };
static_assert(call<2, symbol, int>::fits<symbol, dim> && call<2, symbol, int>::fits<symbol, std::integral_constant<int, 1>>);
static_assert(!call<2, symbol, int>::fits<symbol, symbol>);
static_assert(call<1, std::string_view>::fits<char[3]> && !call<1, std::string_view>::fits<int>);
static_assert(call<1, list_of<symbol>>::fits<std::array<symbol, 2>> && call<1, list_of<int>>::fits<int[3]>);
static_assert(!call<1, list_of<symbol>>::fits<symbol> && !call<1, list_of<symbol>>::fits<std::vector<float>>);
static_assert(call<1, a_number>::fits<float> && call<1, a_number>::fits<gs::dual<double>> && !call<1, a_number>::fits<int>);
static_assert(tensors<1, 2>::fits<symbol, symbol> && !tensors<1, 2>::fits<> && !tensors<1, 2>::fits<symbol, symbol, symbol>);

int captured = 0;
constexpr auto pure = [](auto x) { return x; };
[[maybe_unused]] const auto capturing = [&c = captured](auto x) { return x + c; };
static_assert(before_tensors<2, function, function>::fits<decltype(pure), decltype(capturing), symbol>);
static_assert(!before_tensors<2, function>::fits<decltype(pure)> && !before_tensors<2, function>::fits<symbol, symbol>);
static_assert(before_tensors<2, plain_function>::fits<decltype(pure), symbol>);
static_assert(!before_tensors<2, plain_function>::fits<decltype(capturing), symbol>);

// The result of a refused call fits no parameter. Further calls are refused as well, and no condition of a sentence fails on it.
static_assert(!norm::fits<refused_tensor, symbol, symbol> && accepts<symbol, refused_tensor> && !accepts<symbol, double>);
static_assert(is_refused<std::tuple<symbol, refused_tensor>> && !is_refused<std::tuple<symbol, symbol>> && !is_refused<void>);

// The arity, determined without instantiating bodies that do not compile.
struct scope {};
constexpr auto two = [](auto& m, auto x) { return m.nothing_such(x); };
constexpr auto named = [](scope& m, const auto& x) { return x.nothing_such(m); };
constexpr auto typed = [](scope&, symbol x) { return x; };
constexpr auto any = [](auto&&... x) { return (x.nothing_such(), ...); };
struct last {
  constexpr auto operator()(auto& m, auto x) const { return m.nothing_such(x); }
};
struct no_base final : last {
  constexpr auto operator()(scope&, symbol x) const { return x; }
};
constexpr auto with_default = [](auto& m, int x = 3) { return m.nothing_such(x); };
[[maybe_unused]] constexpr symbol plain(scope&, symbol x) { return x; }
template <class F, class... Arguments>
constexpr bool takes_only =
    is_called_with<F, scope&, Arguments...> && !is_called_with<F, scope&, Arguments..., symbol&> && !is_called_with<F>;
static_assert(takes_only<last, symbol&> && takes_only<no_base, symbol&>);
static_assert(takes_only<decltype(two), symbol&> && takes_only<decltype(named), symbol&> && takes_only<decltype(typed), symbol&>);
static_assert(takes_only<decltype(&plain), symbol&> && !is_called_with<decltype(two), scope&>);
static_assert(is_called_with<decltype(any), scope&> && is_called_with<decltype(any), scope&, symbol&, symbol&>);
static_assert(is_called_with<decltype(with_default), scope&> && !is_called_with<decltype(with_default), scope&, symbol&>);

// A refused call stops the program of its arguments. Without one, it returns a tensor that verbs pass on.
static_assert(tracing::problem_of([](builder& b, auto&) { (void)refused(input(b, "AB"), 3); }).what == gs::fault::refused_call);
static_assert(tracing::problem_of([](builder&, auto& m) { (void)refused(m); }).what == gs::fault::refused_call);
static_assert(tracing::problem_of([](builder& b, auto&) {
                const symbol none = refused(3.0);
                if (none.id < 0 && none.owner->failed() && !b.failed()) (void)b.has(none);
              }).what == gs::fault::refused_call);

}  // namespace
