// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Compile-time errors for wrong calls of verbs: one message per verb.
//
// Sums, reductions and elementwise verbs are in trace/wrong_math.hpp, which explains how these overloads work. Gating and
// the verbs that send tokens to experts are in trace/wrong_routing.hpp.

#include <gshard/base/fixed_string.hpp>
#include <gshard/base/list.hpp>
#include <gshard/ir/reduction.hpp>
#include <gshard/ir/spec.hpp>
#include <gshard/trace/along.hpp>
#include <gshard/trace/attention.hpp>
#include <gshard/trace/builder.hpp>
#include <gshard/trace/call.hpp>
#include <gshard/trace/check_finite.hpp>
#include <gshard/trace/dynamic_slice.hpp>
#include <gshard/trace/loop.hpp>
#include <gshard/trace/parameter_scope.hpp>
#include <gshard/trace/random.hpp>
#include <gshard/trace/scan.hpp>
#include <gshard/trace/shard_map.hpp>
#include <gshard/trace/window.hpp>

#include <array>
#include <initializer_list>
#include <string_view>
#include <type_traits>

namespace gshard { inline namespace v0 {

namespace detail {
inline constexpr int no_dim = -2147483647;

/// annotate<Spec>(x, Spec{}, priority); with Spec = void, annotate(x, spec, priority).
template <class Spec, class... Given>
inline constexpr bool annotates = is_spec<Spec> && call<1, symbol, Spec, int>::template fits<Given...>;
template <class... Given>
inline constexpr bool annotates<void, Given...> = false;
template <class X, class Spec, class... Priority>
inline constexpr bool annotates<void, X, Spec, Priority...> = annotates<Spec, X, Spec, Priority...>;

/// scan(body, init, xs)
template <class... Given>
inline constexpr bool scans = false;
template <class Body, scan_states Init, scan_states Xs, class... Line>
inline constexpr bool scans<Body, Init, Xs, Line...> = !scan_states<Body>;

/// As many refused results as the loop has states, if it has any.
template <class... Given>
constexpr auto refused_states(const Given&... given) {
  if constexpr (sizeof...(Given) <= 3) {
    return refused(given...);
  } else {
    std::array<symbol, sizeof...(Given) - 2> none;
    none.fill(refused(given...));
    return none;
  }
}
}  // namespace detail

// Operations on rows and along a dim.
template <class... Given>
  requires(!detail::tensors<1>::fits<Given...>)
constexpr auto softmax(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: softmax(x) takes one tensor of a program");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<3, symbol, symbol, symbol, double>::fits<Given...>)
constexpr auto layer_norm(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: layer_norm(x, gamma, beta, epsilon = 1e-5) takes three tensors of a program and a number");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<2, symbol, symbol, double>::fits<Given...>)
constexpr auto cross_entropy(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: cross_entropy(logits, labels, smoothing = 0) takes two tensors of a program and a number");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<3, symbol, symbol, symbol, attention_options>::fits<Given...>)
constexpr auto attention(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: attention(q, k, v, options = {}) takes three tensors of a program and attention_options");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<2, symbol, const char*>::fits<Given...>)
constexpr auto check_finite(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: check_finite(x, \"hidden\") takes a tensor of a program and a name for errors");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<1, symbol, int, bool, bool>::fits<Given...>)
constexpr auto cumsum(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: cumsum(x, dim = -1, exclusive = false, reverse = false) takes a tensor of a program, a dim and flags");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<1, symbol, int, bool>::fits<Given...>)
constexpr auto sort(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: sort(x, dim = -1, descending = false) takes a tensor of a program, a dim and a flag");
  return sorted{detail::refused(given...), detail::refused(given...)};
}
template <class... Given>
  requires(!detail::call<2, symbol, int, int, bool>::fits<Given...>)
constexpr auto top_k(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: top_k(x, k, dim = -1, largest = true) takes a tensor of a program, a count, a dim and a flag");
  return sorted{detail::refused(given...), detail::refused(given...)};
}
template <class... Given>
  requires(!detail::call<2, symbol, symbol, int, int>::fits<Given...>)
constexpr auto gather(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: gather(table, ids, dim = 0, batch = 0) takes two tensors of a program, a dim and a number of dims");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<3, symbol, symbol, symbol, int, int>::fits<Given...>)
constexpr auto scatter_add(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: scatter_add(x, ids, updates, dim = 0, batch = 0) takes three tensors of a program, a dim and a number of dims");
  return detail::refused(given...);
}
template <fixed_string Letters = "", class... Given>
  requires(detail::left_out<Letters> || !detail::call<1, parameter_scope, int>::fits<Given...>)
constexpr auto iota(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: iota<\"TU\">(m, along = 0) takes the letters of dims, the first argument of the model and a dim");
  return detail::refused(given...);
}
template <fixed_string Letter = "", class T = float, class... Given>
  requires(detail::left_out<Letter> || !detail::tensors<1>::fits<Given...>)
constexpr auto one_hot(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: one_hot<\"E\">(ids) takes the letter of a dim and one tensor of a program");
  return detail::refused(given...);
}
template <fixed_string Letters = "", class... Given>
  requires(detail::left_out<Letters> || !detail::call<1, parameter_scope>::fits<Given...>)
constexpr auto uniform(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: uniform<\"BT\">(m) takes the letters of dims and the first argument of the model");
  return detail::refused(given...);
}
template <fixed_string Letters = "", class... Given>
  requires(detail::left_out<Letters> || !detail::call<1, parameter_scope>::fits<Given...>)
constexpr auto normal(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: normal<\"BT\">(m) takes the letters of dims and the first argument of the model");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<4, symbol, int, symbol, int>::fits<Given...>)
constexpr auto dynamic_slice(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: dynamic_slice(x, dim, start, size) takes a tensor of a program, a dim, an int32 scalar of a program and a number");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<4, symbol, symbol, int, symbol>::fits<Given...>)
constexpr auto dynamic_update_slice(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: dynamic_update_slice(x, update, dim, start) takes two tensors of a program, a dim and an int32 scalar");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<4, symbol, int, int, int, int>::fits<Given...> &&
           !detail::call<2, symbol, detail::list_of<dim_range>>::fits<Given...>)
constexpr auto slice(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: slice(x, dim, start, stop, stride = 1) takes a tensor of a program and integers");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<4, symbol, int, int, int, int, double>::fits<Given...> &&
           !detail::call<2, symbol, detail::list_of<dim_padding>, double>::fits<Given...>)
constexpr auto pad(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: pad(x, dim, low, high, interior = 0, fill = 0) takes a tensor of a program, integers and a number");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<2, symbol, int>::fits<Given...> && !detail::call<2, symbol, detail::list_of<int>>::fits<Given...>)
constexpr auto reverse(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: reverse(x, dim) takes a tensor of a program and a dim");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<3, symbol, int, int>::fits<Given...> && !detail::call<2, symbol, detail::list_of<dim_shift>>::fits<Given...>)
constexpr auto roll(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: roll(x, dim, shift) takes a tensor of a program, a dim and an integer");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<2, detail::list_of<symbol>, int>::fits<Given...>)
constexpr auto concat(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: concat({a, b, ...}, dim) takes a list of tensors of a program and a dim");
  return detail::refused(given...);
}
template <class... Given>
constexpr auto concat(std::initializer_list<detail::anything>, const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: concat({a, b, ...}, dim) takes a list of tensors of a program and a dim");
  return detail::refused(given...);
}

// Reshapes and annotations.
template <int At = detail::no_dim, class... Given>
  requires(At == detail::no_dim ? !detail::call<2, symbol, int>::fits<Given...> : !detail::tensors<1>::fits<Given...>)
constexpr auto merge_dims(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: merge_dims<1>(x) takes a dim and one tensor of a program");
  return detail::refused(given...);
}
template <int At = detail::no_dim, class... Given>
  requires(At == detail::no_dim ? !detail::call<2, symbol, int>::fits<Given...> : !detail::tensors<1>::fits<Given...>)
constexpr auto expand_dims(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: expand_dims<1>(x) takes a dim and one tensor of a program");
  return detail::refused(given...);
}
template <int At = detail::no_dim, class... Given>
  requires(At == detail::no_dim ? !detail::call<2, symbol, int>::fits<Given...> : !detail::tensors<1>::fits<Given...>)
constexpr auto squeeze(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: squeeze<1>(x) takes a dim and one tensor of a program");
  return detail::refused(given...);
}
template <int At = detail::no_dim, class... Given>
  requires(At == detail::no_dim
               ? !detail::call<2, symbol, int>::fits<Given...> && !detail::call<4, symbol, int, int, int>::fits<Given...>
               : !detail::call<1, symbol, std::string_view>::fits<Given...>)
constexpr auto split_dim(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: split_dim<1>(x, \"BT\") takes a dim, one tensor of a program and, unless the dim was merged, two letters");
  return detail::refused(given...);
}
template <fixed_string Letters = "", class... Given>
  requires(Letters.view().empty() ? !detail::call<2, symbol, std::string_view>::fits<Given...> : !detail::tensors<1>::fits<Given...>)
constexpr auto rename_dims(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: rename_dims<\"BK\">(x) takes a letter for each dim and one tensor of a program");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::tensors<1>::fits<Given...>)
constexpr auto replicate(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: replicate(x) takes one tensor of a program");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::tensors<1>::fits<Given...>)
constexpr auto may_move(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: may_move(x) takes one tensor of a program");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::tensors<1>::fits<Given...>)
constexpr auto propagation_barrier(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: propagation_barrier(x) takes one tensor of a program");
  return detail::refused(given...);
}
template <class Spec = void, class... Given>
  requires(!detail::annotates<Spec, Given...> &&
           !(std::is_void_v<Spec> && detail::call<2, symbol, named_sharding, int>::fits<Given...>))
constexpr auto annotate(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: annotate<P<\"data\", none>>(x) takes a partition spec and one tensor of a program");
  return detail::refused(given...);
}
template <fixed_string Dims, class... Given>
  requires(!detail::call<1, symbol, int>::fits<Given...>)
constexpr auto annotate(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: annotate<\"B@data,M\">(x) takes dims with their mesh axes and one tensor of a program");
  return detail::refused(given...);
}
template <fixed_string... Axes, class... Given>
  requires(sizeof...(Axes) == 0 || !detail::call<2, symbol, int>::fits<Given...>)
constexpr auto split(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: split<\"data\">(x, dim) takes mesh axes, a tensor of a program and a dim");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::call<3, symbol, detail::list_of<int>, detail::list_of<int>>::fits<Given...>)
constexpr auto assign(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: assign(x, {2, 4}, {0, 1, ...}) takes a tensor of a program, the pieces along each dim, and their devices");
  return detail::refused(given...);
}
template <class X>
constexpr auto assign(const X& x, std::initializer_list<int>) {
  static_assert(detail::accepts<X>,
                "gshard: assign(x, {2, 4}, {0, 1, ...}) takes a tensor of a program, the pieces along each dim, and their devices");
  return detail::refused(x);
}
template <class X>
  requires(!detail::is_symbol<X>)
constexpr auto assign(const X& x, std::initializer_list<int>, std::initializer_list<int>) {
  static_assert(detail::accepts<X>,
                "gshard: assign(x, {2, 4}, {0, 1, ...}) takes a tensor of a program, the pieces along each dim, and their devices");
  return detail::refused(x);
}

// Loops, gradients.
template <class... Given>
  requires(!detail::before_tensors<64, detail::function, detail::function>::fits<Given...>)
constexpr auto while_loop(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: while_loop(condition, body, x, ...) takes two functions and tensors of a program");
  return detail::refused_states(given...);
}
template <class... Given>
  requires(!detail::scans<Given...>)
constexpr auto scan(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: scan(body, init, xs) takes a function, and twice a tensor or a tuple of tensors; without xs, scan<8>(body, init)");
  return detail::refused(given...);
}
template <int Count, class... Given>
  requires(!detail::call<2, symbol, detail::function>::fits<Given...>)
constexpr auto repeat(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: repeat<3>(x, body) takes a tensor of a program and a function");
  return detail::refused(given...);
}
template <class... Given>
  requires(!detail::before_tensors<64, symbol, detail::function>::fits<Given...>)
constexpr auto repeat(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: repeat(count, body, x, ...) takes a scalar tensor, a function and tensors; a number is repeat<3>(x, body)");
  return detail::refused_states(given...);
}
template <class... Given>
  requires(!detail::call<2, symbol, detail::list_of<symbol>>::fits<Given...>)
constexpr auto gradients(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: gradients(loss, list) takes a scalar and a list of tensors of a program, as trainable(m) or {w, b}");
  return list<symbol>(16, detail::refused(given...));
}
template <class... Given>
  requires(!detail::call<1, parameter_scope>::fits<Given...>)
constexpr auto trainable(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: trainable(m) takes the first argument of the model");
  return list<symbol>(16, detail::refused(given...));
}

// Manual regions.
template <fixed_string Axis = "", class... Given>
  requires(detail::left_out<Axis> || !detail::call<1, symbol, reduction>::fits<Given...>)
constexpr auto all_reduce(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: all_reduce<\"x\">(t, reduction::sum) takes a mesh axis, a tensor of a program and a reduction");
  return detail::refused(given...);
}
template <fixed_string Axis = "", class... Given>
  requires(detail::left_out<Axis> || !detail::call<2, symbol, int>::fits<Given...>)
constexpr auto all_gather(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: all_gather<\"x\">(t, dim) takes a mesh axis, a tensor of a program and a dim");
  return detail::refused(given...);
}
template <fixed_string Axis = "", class... Given>
  requires(detail::left_out<Axis> || !detail::call<2, symbol, int>::fits<Given...>)
constexpr auto reduce_scatter(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: reduce_scatter<\"x\">(t, dim) takes a mesh axis, a tensor of a program and a dim");
  return detail::refused(given...);
}
template <fixed_string Axis = "", class... Given>  // all_to_all<0, 1>(t) takes tensors outside of programs
  requires(Axis.view() != "<number>" && (detail::left_out<Axis> || !detail::call<3, symbol, int, int>::fits<Given...>))
constexpr auto all_to_all(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: all_to_all<\"x\">(t, split, concat) takes a mesh axis, a tensor of a program and two dims");
  return detail::refused(given...);
}
template <fixed_string Axis = "", class... Given>
  requires(detail::left_out<Axis> || !detail::call<2, symbol, int, border>::fits<Given...>)
constexpr auto shift(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: shift<\"x\">(t, by, border::wrap) takes a mesh axis, a tensor of a program, an integer and a border");
  return detail::refused(given...);
}
template <fixed_string Axis = "", class... Given>
constexpr auto collective_permute(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: collective_permute<\"x\", device_pairs({{0, 1}, {1, 2}})>(t) takes a mesh axis, pairs and a tensor of a program");
  return detail::refused(given...);
}
template <fixed_string Axis, device_pairs Pairs, class... Given>
  requires(!detail::tensors<1>::fits<Given...>)
constexpr auto collective_permute(const Given&... given) {
  return collective_permute<Axis>(given...);
}
template <fixed_string Axis = "", int Low = 0, int High = 0, class... Given>
  requires(detail::left_out<Axis> || !detail::call<2, symbol, int, border>::fits<Given...>)
constexpr auto halo(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: halo<\"x\", 1, 1>(t, dim, border::zeros) takes an axis, two widths, a tensor of a program, a dim and a border");
  return detail::refused(given...);
}
template <fixed_string Axis = "", class... Given>
  requires(detail::left_out<Axis> || !detail::tensors<1>::fits<Given...>)
constexpr auto device_index(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: device_index<\"x\">(t) takes a mesh axis and one tensor of a program");
  return detail::refused(given...);
}
template <fixed_string Axis, class... Specs, class... Given>
  requires(sizeof...(Specs) == 0 || !detail::before_tensors<64, detail::function>::fits<Given...>)
constexpr auto per_shard(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: per_shard<\"x\", P<\"x\", none>>(body, x, ...) takes an axis, specs, a function, and tensors of a program");
  return detail::refused(given...);
}
// The name before that of call_on_shards.
template <auto F, class Spec, class... Given>
constexpr auto per_shard(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: per_shard of a C++ function is call_on_shards<f, \"B@data,M\">(x, ...)");
  return detail::refused(given...);
}
template <auto F, fixed_string Letters, class Spec, class... Given>
constexpr auto per_shard(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: per_shard of a C++ function is call_on_shards<f, \"B@data,M\">(x, ...)");
  return detail::refused(given...);
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
