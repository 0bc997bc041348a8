// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// SwiGLU, the gated activation of feed-forward layers (arXiv 2002.05202).

#include <gshard/core/base/dual.hpp>
#include <gshard/core/base/exponential.hpp>
#include <gshard/core/trace/map.hpp>

namespace gshard { inline namespace v0 { namespace nn {

namespace detail {

/// 1 / (1 + exp(-v)) and its derivative, without branches, so that loops of it vectorize.
template <class T>
constexpr T sigmoid(T v) {
  const T e = gshard::detail::exponential(v < T(0) ? v : -v);  // at most 1
  return (v < T(0) ? e : T(1)) / (1 + e);
}
template <class T>
constexpr dual<T> sigmoid(dual<T> v) {
  const T s = sigmoid(v.value);
  return {s, s * (1 - s) * v.slope};
}

inline constexpr auto gated_by_silu = [](auto g, auto v) { return g * sigmoid(g) * v; };

}  // namespace detail

/// swiglu(gate, x) = silu(gate) * x, where silu(v) = v / (1 + exp(-v)). Values and derivatives are finite for all finite operands with a
/// finite product.
/// Shapes: two tensors of equal dims -> the same.
/// Communicates: nothing if the operands have one sharding.
/// Compile time: equal dims; a real element type.
/// Throws: nothing.
/// @see nn::moe
template <class Used = void>
constexpr symbol swiglu(here gate, symbol x) {
  return map<when_used<Used, detail::gated_by_silu>>(gate, x);
}

}}}  // namespace gshard::v0::nn
