// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Operations along one dim on tensors outside of programs: softmax, layer_norm, cross_entropy, cumsum, sort and top_k.

#include <gshard/eager/eager_call.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/ops/along/cumsum.hpp>
#include <gshard/ops/along/sort.hpp>
#include <gshard/ops/rows/cross_entropy.hpp>
#include <gshard/ops/rows/layer_norm.hpp>
#include <gshard/ops/rows/softmax.hpp>

#if GSHARD_HEADER_ONLY
#include <gshard/ops/along/cumsum_kernel.hpp>
#include <gshard/ops/along/sort_kernel.hpp>
#include <gshard/ops/rows/cross_entropy_kernel.hpp>
#include <gshard/ops/rows/layer_norm_kernel.hpp>
#include <gshard/ops/rows/softmax_kernel.hpp>
#endif

#include <cstdint>
#include <tuple>
#include <utility>

namespace gshard { inline namespace v0 {

/// Sorted elements with their original indices: `sorted` on tensors.
template <class Values, class Ids>
struct sorted_tensors {
  Values values;
  Ids ids;  // int32
};

namespace detail {
inline constexpr auto softmax_model = [](auto&, auto x) { return softmax(x); };
inline constexpr auto layer_norm_model = [](auto&, auto x, auto gamma, auto beta) { return layer_norm(x, gamma, beta); };
inline constexpr auto cross_entropy_model = [](auto&, auto logits, auto labels) { return cross_entropy(logits, labels); };
template <int Dim, bool Exclusive, bool Reverse>
inline constexpr auto cumsum_model = [](auto&, auto x) { return cumsum<Dim, Exclusive, Reverse>(x); };
template <int Dim, bool Descending>
inline constexpr auto sort_model = [](auto&, auto x) {
  const sorted s = sort<Dim, Descending>(x);
  return std::tuple<symbol, symbol>{s.values, s.ids};
};
template <int K, int Dim, bool Largest>
inline constexpr auto top_k_model = [](auto&, auto x) {
  const sorted s = top_k<K, Dim, Largest>(x);
  return std::tuple<symbol, symbol>{s.values, s.ids};
};
template <class Values, class Ids>
sorted_tensors<Values, Ids> as_sorted(std::tuple<Values, Ids>&& both) {
  return {std::move(std::get<0>(both)), std::move(std::get<1>(both))};
}
template <class Refused>
Refused as_sorted(const Refused& refused) {
  return refused;
}
}  // namespace detail

/// softmax(x)[..., i] = exp(x_i) / sum_j exp(x_j) over the last dim, on tensors.
/// Shapes: [..., N] -> the same.
/// Communicates: nothing, or a reshard, if the last dim is sharded.
/// Compile time: that x is complete.
/// Throws: nothing.
/// @see ops/rows/softmax.hpp
template <class T, class Spec>
auto softmax(const tensor<T, Spec>& x) {
  return detail::run_verb<detail::softmax_model>("softmax", x);
}
/// layer_norm(x, gamma, beta) = (x - mean) / sqrt(variance + 1e-5) * gamma + beta over the last dim, on tensors.
/// Shapes: x [..., N], gamma [N], beta [N] -> the shape of x.
/// Communicates: nothing, or, if the last dim is sharded, sums per row; a reshard if that is less.
/// Compile time: ranks; one real element type; that operands are complete.
/// Throws: `gshard::error` if operands differ in an extent.
/// @see ops/rows/layer_norm.hpp
template <class T, class X, class G, class Gamma, class B, class Beta>
auto layer_norm(const tensor<T, X>& x, const tensor<G, Gamma>& gamma, const tensor<B, Beta>& beta) {
  constexpr int last = X::rank - 1;
  return detail::run_verb<detail::layer_norm_model, detail::first_letters<X::rank>,
                          detail::letters_of_factors<detail::counting(Gamma::rank, last)>(),
                          detail::letters_of_factors<detail::counting(Beta::rank, last)>()>("layer_norm", x, gamma, beta);
}
/// cross_entropy(logits, labels)[...] = -log softmax(logits)_label on tensors. A label below 0 costs 0.
/// Shapes: logits [..., V], int32 labels [...] -> [...].
/// Communicates: nothing, or, if V is sharded, three numbers per row.
/// Compile time: ranks and element types; that operands are complete.
/// Throws: `gshard::error` on all processes, if a label is V or more; if operands differ in an extent.
/// @see ops/rows/cross_entropy.hpp
template <class T, class X, class L, class Labels>
auto cross_entropy(const tensor<T, X>& logits, const tensor<L, Labels>& labels) {
  return detail::run_verb<detail::cross_entropy_model>("cross_entropy", logits, labels);
}
/// cumsum<1>(x)[i] = sum of x[j] over j <= i along dim 1, on tensors. `Exclusive`: j < i. `Reverse`: j >= i, or j > i with both.
/// Shapes: [..., N, ...] -> the same. A negative dim counts from the back.
/// Communicates: nothing, or, if the dim is sharded, an all_gather of one number per block and row.
/// Compile time: that x has this dim; a real element type; that x is complete.
/// Throws: nothing.
/// @see ops/along/cumsum.hpp
template <int Dim = -1, bool Exclusive = false, bool Reverse = false, class T, class Spec>
auto cumsum(const tensor<T, Spec>& x) {
  return detail::run_verb<detail::cumsum_model<Dim, Exclusive, Reverse>>("cumsum", x);
}
/// sort<1>(x) on tensors: the elements along dim 1 in ascending order, or `Descending`, with their original indices:
/// `const auto [values, ids] = gs::sort<1>(x);`. The sort is stable. NaN counts as the largest number.
/// Shapes: [..., N, ...] -> values and int32 indices of the same shape. A negative dim counts from the back.
/// Communicates: nothing, or, if the dim is sharded, an all_to_all or an all_gather.
/// Compile time: that x has this dim; a real element type; that x is complete.
/// Throws: nothing.
/// @see ops/along/sort.hpp, argmax
template <int Dim = -1, bool Descending = false, class T, class Spec>
auto sort(const tensor<T, Spec>& x) {
  return detail::as_sorted(detail::run_verb<detail::sort_model<Dim, Descending>>("sort", x));
}
/// top_k<3, 1>(x) on tensors: the 3 largest elements along dim 1, or the smallest, best first, with their original indices.
/// Shapes: [..., N, ...] -> values and int32 indices [..., K, ...]. A negative dim counts from the back.
/// Communicates: nothing, or, if the dim is sharded, an all_gather of the K best elements of every block.
/// Compile time: that x has this dim; 1 <= K; a real element type; that x is complete.
/// Throws: `gshard::error` if K > N.
/// @see sort, ops/along/sort.hpp
template <int K, int Dim = -1, bool Largest = true, class T, class Spec>
auto top_k(const tensor<T, Spec>& x) {
  return detail::as_sorted(detail::run_verb<detail::top_k_model<K, Dim, Largest>>("top_k", x));
}

}}  // namespace gshard::v0
