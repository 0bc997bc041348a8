// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Slices, padding, rotation, concatenation and reshapes on tensors outside of programs. A transpose is einsum<"AB->BA">.

#include <gshard/core/trace/shape.hpp>
#include <gshard/eager/eager_call.hpp>
#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/reverse.hpp>
#include <gshard/ops/window/roll.hpp>
#include <gshard/ops/window/slice.hpp>

#if GSHARD_HEADER_ONLY
#include <gshard/ops/window/concat_kernel.hpp>
#include <gshard/ops/window/moved_kernel.hpp>
#endif

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace gshard { inline namespace v0 {

namespace detail {
template <int Dim, std::int64_t Start, std::int64_t Stop, std::int64_t Stride>
inline constexpr auto slice_model = [](auto&, auto x) { return slice(x, Dim, Start, Stop, Stride); };
template <int Dim, int Low, int High, int Interior>
inline constexpr auto pad_model = [](auto&, auto x) { return pad(x, Dim, Low, High, Interior); };
template <int Dim>
inline constexpr auto reverse_model = [](auto&, auto x) { return reverse(x, Dim); };
template <int Dim, int Shift>
inline constexpr auto roll_model = [](auto&, auto x) { return roll(x, Dim, Shift); };
template <int Dim>
inline constexpr auto concat_model = [](auto&, auto... x) { return concat({x...}, Dim); };
template <int Dim>
inline constexpr auto merge_dims_model = [](auto&, auto x) { return merge_dims<Dim>(x); };
template <int Dim>
inline constexpr auto split_dim_model = [](auto&, auto x) { return split_dim<Dim>(x, "YZ"); };
template <int Dim>
inline constexpr auto expand_dims_model = [](auto&, auto x) { return expand_dims<Dim>(x); };
template <int Dim>
inline constexpr auto squeeze_model = [](auto&, auto x) { return squeeze<Dim>(x); };

template <int Dim, std::size_t... I, class T, class... Specs>
auto eager_concat(std::index_sequence<I...>, const tensor<T, Specs>&... parts) {
  return run_verb<concat_model<Dim>, letters_with_own_dim<Specs::rank, Dim, I>...>("concat", parts...);
}
}  // namespace detail

/// slice<dim, start, stop, stride>(x)[i] = x[start + stride * i] along one dim, for start + stride * i < stop, on tensors. For a start that
/// is known at run time use dynamic_slice.
/// Shapes: [..., N, ...] -> [..., ceil((stop - start) / stride), ...].
/// Communicates: nothing, or, if the dim is sharded, one exchange of the missing elements.
/// Compile time: that x has the dim; 0 <= start <= stop; stride >= 1; that x is complete.
/// Throws: `gshard::error` if stop > N.
/// @see dynamic_slice, ops/window/slice.hpp
template <int Dim, std::int64_t Start, std::int64_t Stop, std::int64_t Stride = 1, class T, class Spec>
auto slice(const tensor<T, Spec>& x) {
  return detail::run_verb<detail::slice_model<Dim, Start, Stop, Stride>>("slice", x);
}
/// pad<dim, low, high, interior>(x) on tensors: `low` zeros before, `high` after and `interior` between the elements along one dim.
/// Negative `low` and `high` remove elements.
/// Shapes: [..., N, ...] -> [..., low + N + (N - 1) interior + high, ...].
/// Communicates: nothing, or, if the dim is sharded, one exchange of the missing elements.
/// Compile time: that x has the dim; interior >= 0; that x is complete.
/// Throws: `gshard::error` if more elements are removed than there are.
/// @see slice, ops/window/pad.hpp
template <int Dim, int Low, int High, int Interior = 0, class T, class Spec>
auto pad(const tensor<T, Spec>& x) {
  return detail::run_verb<detail::pad_model<Dim, Low, High, Interior>>("pad", x);
}
/// reverse<dim>(x)[i] = x[N - 1 - i] along one dim of extent N, on tensors.
/// Shapes: any -> the same.
/// Communicates: nothing, or, if the dim is sharded, one collective_permute.
/// Compile time: that x has the dim; that x is complete.
/// Throws: nothing.
/// @see ops/window/reverse.hpp
template <int Dim, class T, class Spec>
auto reverse(const tensor<T, Spec>& x) {
  return detail::run_verb<detail::reverse_model<Dim>>("reverse", x);
}
/// roll<dim, shift>(x)[i] = x[(i - shift) mod N] along one dim of extent N, on tensors.
/// Shapes: any -> the same.
/// Communicates: nothing, or, if the dim is sharded, one exchange of the elements that cross shard borders.
/// Compile time: that x has the dim; that x is complete.
/// Throws: nothing.
/// @see ops/window/roll.hpp
template <int Dim, int Shift, class T, class Spec>
auto roll(const tensor<T, Spec>& x) {
  return detail::run_verb<detail::roll_model<Dim, Shift>>("roll", x);
}
/// concat<dim>(a, b, ...) on tensors: the operands one after the other along one dim. At most 7.
/// Shapes: [..., N_i, ...] -> [..., sum of N_i, ...].
/// Communicates: nothing, or, if the dim is sharded, the missing elements of every operand.
/// Compile time: ranks and element types; that the operands have the dim, and are complete.
/// Throws: `gshard::error` if the operands differ in the extent of another dim.
/// @see ops/window/concat.hpp
template <int Dim, class T, class... Specs>
  requires(sizeof...(Specs) > 0)
auto concat(const tensor<T, Specs>&... parts) {
  return detail::eager_concat<Dim>(std::index_sequence_for<Specs...>{}, parts...);
}
/// merge_dims<1>(x) on tensors: dims 1 and 2 as one.
/// Shapes: [G,B,T,M] -> [G,B*T,M].
/// Communicates: nothing if only the first of the two dims is sharded into equal blocks.
/// Compile time: that x has both dims; that x is complete.
/// Throws: nothing.
/// @see split_dim, core/trace/shape.hpp
template <int Dim, class T, class Spec>
auto merge_dims(const tensor<T, Spec>& x) {
  return detail::run_verb<detail::merge_dims_model<Dim>>("merge_dims", x);
}
/// split_dim<1>(x, 4, 8) on tensors: dim 1 as two dims of these extents.
/// Shapes: [G,B*T,M] -> [G,B,T,M].
/// Communicates: nothing, or, if shards of the dim do not hold whole indices of the first new dim, their borders.
/// Compile time: that x has the dim; that x is complete.
/// Throws: `gshard::error` if the extent of the dim is not the product of the two.
/// @see merge_dims, core/trace/shape.hpp
template <int Dim, class T, class Spec, std::integral First, std::integral Second>
auto split_dim(const tensor<T, Spec>& x, First first, Second second) {
  return detail::run_eager_with<detail::split_dim_model<Dim>, spec<>, float, "YZ">(
      "split_dim", detail::added_extents(x.cluster(), {std::int64_t(first), std::int64_t(second)}), x);
}
/// expand_dims<1>(x) on tensors: x with a dim of extent 1 before dim 1.
/// Shapes: [B,T] -> [B,1,T].
/// Communicates: nothing.
/// Compile time: that the dim is at most the rank of x; that x is complete.
/// Throws: nothing.
/// @see squeeze, core/trace/shape.hpp
template <int Dim, class T, class Spec>
auto expand_dims(const tensor<T, Spec>& x) {
  return detail::run_verb<detail::expand_dims_model<Dim>>("expand_dims", x);
}
/// squeeze<1>(x) on tensors: x without dim 1.
/// Shapes: [B,1,T] -> [B,T].
/// Communicates: nothing, or an all_gather, if the dim is sharded.
/// Compile time: that x has the dim; that x is complete.
/// Throws: `gshard::error` if the extent is not 1.
/// @see expand_dims, core/trace/shape.hpp
template <int Dim, class T, class Spec>
auto squeeze(const tensor<T, Spec>& x) {
  return detail::run_verb<detail::squeeze_model<Dim>>("squeeze", x);
}

}}  // namespace gshard::v0
