// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// SwiGLU, the gated activation of feed-forward layers (arXiv 2002.05202).

#include <gshard/base/math.hpp>
#include <gshard/trace/map.hpp>

namespace gshard { inline namespace v0 { namespace nn {

/// swiglu(gate, x) = silu(gate) * x, where silu(v) = v / (1 + exp(-v)). Values and derivatives are finite for all finite operands whose
/// product is.
/// Shapes: two tensors of equal dims -> the same.
/// Communicates: nothing if the operands have one sharding.
/// Compile time: equal dims; a real element type.
/// Throws: nothing.
/// @see nn::moe
constexpr symbol swiglu(here gate, symbol x) {
  return map<[](auto g, auto v) { return g * (tanh(g * 0.5f) + 1.0f) * 0.5f * v; }>(gate, x);
}

}}}  // namespace gshard::v0::nn
