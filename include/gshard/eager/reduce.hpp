// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Sums and other reductions on tensors outside of programs.

#include <gshard/eager/einsum.hpp>
#include <gshard/ops/reduce/argmax.hpp>
#include <gshard/ops/reduce/logsumexp.hpp>
#include <gshard/ops/reduce/reduce.hpp>

#if GSHARD_HEADER_ONLY
#include <gshard/ops/reduce/argmax_kernel.hpp>
#include <gshard/ops/reduce/reduce_kernel.hpp>
#endif

namespace gshard { inline namespace v0 {

namespace detail {
inline constexpr auto sum_model = [](auto&, auto x) { return sum(x); };
inline constexpr auto mean_model = [](auto&, auto x) { return mean(x); };
template <fixed_string Equation>
inline constexpr auto mean_over_model = [](auto&, auto x) { return mean<Equation>(x); };
template <reduction What>
inline constexpr auto reduce_model = [](auto&, auto x) { return reduce(x, What); };
template <fixed_string Equation, reduction What>
inline constexpr auto reduce_over_model = [](auto&, auto x) { return reduce<Equation>(x, What); };
template <fixed_string Equation>
inline constexpr auto argmax_model = [](auto&, auto x) { return argmax<Equation>(x); };
template <fixed_string Equation>
inline constexpr auto argmin_model = [](auto&, auto x) { return argmin<Equation>(x); };
template <fixed_string Equation>
inline constexpr auto logsumexp_model = [](auto&, auto x) { return logsumexp<Equation>(x); };
}  // namespace detail

/// sum(x), sum<"AB->A">(x) on tensors: the sum over all dims, or over the indices that the output lacks. The result is a partial sum over
/// the axes that shard these indices, as with einsum.
/// Shapes: as the equation says; without one, a scalar.
/// Communicates: nothing.
/// Compile time: the equation, rank; that x is complete.
/// Throws: nothing.
/// @see core/trace/einsum.hpp, reshard
template <class T, class Spec>
auto sum(const tensor<T, Spec>& x) {
  return detail::run_verb<detail::sum_model>("sum", x);
}
template <fixed_string Equation, class T, class Spec>
auto sum(const tensor<T, Spec>& x) {
  return einsum<Equation>(x);
}
/// mean(x), mean<"AB->A">(x) on tensors: the sum, divided by the extents of the summed dims. It may be a partial sum, as with `sum`.
/// Shapes: as the equation says; without one, a scalar.
/// Communicates: nothing.
/// Compile time: the equation, rank; that x is complete; a real or complex element type.
/// Throws: nothing.
/// @see core/trace/einsum.hpp, reshard
template <class T, class Spec>
auto mean(const tensor<T, Spec>& x) {
  return detail::run_verb<detail::mean_model>("mean", x);
}
template <fixed_string Equation, class T, class Spec>
auto mean(const tensor<T, Spec>& x) {
  return detail::run_equation<detail::mean_over_model<Equation>, Equation>(x);
}
/// reduce_sum(x), reduce_sum<"AB->A">(x) on tensors: the same as `sum`.
/// Shapes: as sum.
/// Communicates: as sum.
/// Compile time: as sum.
/// Throws: nothing.
/// @see sum
template <class T, class Spec>
auto reduce_sum(const tensor<T, Spec>& x) {
  return sum(x);
}
template <fixed_string Equation, class T, class Spec>
auto reduce_sum(const tensor<T, Spec>& x) {
  return sum<Equation>(x);
}
/// reduce_mean(x), reduce_mean<"AB->A">(x) on tensors: the same as `mean`.
/// Shapes: as mean.
/// Communicates: as mean.
/// Compile time: as mean.
/// Throws: nothing.
/// @see mean
template <class T, class Spec>
auto reduce_mean(const tensor<T, Spec>& x) {
  return mean(x);
}
template <fixed_string Equation, class T, class Spec>
auto reduce_mean(const tensor<T, Spec>& x) {
  return mean<Equation>(x);
}
/// reduce_max(x), reduce_max<"AB->A">(x) on tensors: the largest element over all dims, or over the indices that the output lacks. The
/// result is complete.
/// Shapes: as the equation says; without one, a scalar.
/// Communicates: an all_reduce or reduce_scatter with `max`, if a reduced dim is sharded.
/// Compile time: the equation, rank; that x is complete; a real element type.
/// Throws: nothing.
/// @see ops/reduce/reduce.hpp
template <class T, class Spec>
auto reduce_max(const tensor<T, Spec>& x) {
  return detail::run_verb<detail::reduce_model<reduction::max>>("reduce_max", x);
}
template <fixed_string Equation, class T, class Spec>
auto reduce_max(const tensor<T, Spec>& x) {
  return detail::run_equation<detail::reduce_over_model<Equation, reduction::max>, Equation>(x);
}
/// reduce_min(x), reduce_min<"AB->A">(x) on tensors: the smallest element.
/// Shapes: as reduce_max.
/// Communicates: as reduce_max.
/// Compile time: as reduce_max.
/// Throws: nothing.
/// @see reduce_max
template <class T, class Spec>
auto reduce_min(const tensor<T, Spec>& x) {
  return detail::run_verb<detail::reduce_model<reduction::min>>("reduce_min", x);
}
template <fixed_string Equation, class T, class Spec>
auto reduce_min(const tensor<T, Spec>& x) {
  return detail::run_equation<detail::reduce_over_model<Equation, reduction::min>, Equation>(x);
}
/// reduce_prod(x), reduce_prod<"AB->A">(x) on tensors: the product.
/// Shapes: as reduce_max.
/// Communicates: as reduce_max.
/// Compile time: as reduce_max.
/// Throws: nothing.
/// @see reduce_max
template <class T, class Spec>
auto reduce_prod(const tensor<T, Spec>& x) {
  return detail::run_verb<detail::reduce_model<reduction::prod>>("reduce_prod", x);
}
template <fixed_string Equation, class T, class Spec>
auto reduce_prod(const tensor<T, Spec>& x) {
  return detail::run_equation<detail::reduce_over_model<Equation, reduction::prod>, Equation>(x);
}
/// argmax<"AB->A">(x) on tensors: the index of the largest element along the one dim that the output lacks, int32.
/// Shapes: as the equation says.
/// Communicates: if that dim is sharded, the maximum and the index.
/// Compile time: the equation, rank; that x is complete; a real element type.
/// Throws: nothing.
/// @see ops/reduce/argmax.hpp
template <fixed_string Equation, class T, class Spec>
auto argmax(const tensor<T, Spec>& x) {
  return detail::run_equation<detail::argmax_model<Equation>, Equation>(x);
}
/// argmin<"AB->A">(x) on tensors: the index of the smallest element.
/// Shapes: as the equation says.
/// Communicates: as argmax.
/// Compile time: as argmax.
/// Throws: nothing.
/// @see argmax
template <fixed_string Equation, class T, class Spec>
auto argmin(const tensor<T, Spec>& x) {
  return detail::run_equation<detail::argmin_model<Equation>, Equation>(x);
}
/// logsumexp<"AB->A">(x) on tensors: log(sum exp x) over the indices that the output lacks.
/// Shapes: as the equation says.
/// Communicates: if a reduced dim is sharded, the maximum and the sum.
/// Compile time: the equation, rank; that x is complete; a real element type.
/// Throws: nothing.
/// @see ops/reduce/logsumexp.hpp
template <fixed_string Equation, class T, class Spec>
auto logsumexp(const tensor<T, Spec>& x) {
  return detail::run_equation<detail::logsumexp_model<Equation>, Equation>(x);
}

}}  // namespace gshard::v0
