// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Softmax on tensors outside of programs.

#include <gshard/op/eager.hpp>
#include <gshard/op/reshard.hpp>
#include <gshard/trace/rows.hpp>

namespace gshard { inline namespace v0 {

namespace detail {
inline constexpr auto softmax_model = [](auto&, auto x) { return softmax(x); };
}  // namespace detail

/// softmax(x)[..., i] = exp(x_i) / sum_j exp(x_j) over the last dim, on tensors.
/// Shapes: [..., N] -> the same.
/// Communicates: nothing, or a reshard, if the last dim is sharded.
/// Compile time: that x is complete.
/// Throws: nothing.
/// @see trace/rows.hpp
template <class T, class Spec>
auto softmax(const tensor<T, Spec>& x) {
  static_assert(holds<!tensor<T, Spec>::is_partial, actual_type<Spec>>,
                "gshard: a partial sum is used as a complete tensor; reshard it first");
  return detail::run_eager<detail::softmax_model, spec<>, detail::first_letters<Spec::rank>>("softmax", x);
}

}}  // namespace gshard::v0
