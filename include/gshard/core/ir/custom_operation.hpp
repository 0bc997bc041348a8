// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A user-defined operation as an entry of a plan: its name, kernels, gradient and cost.

#include <gshard/core/base/optional_function.hpp>
#include <gshard/core/ir/pointwise.hpp>

#include <string_view>

namespace gshard { inline namespace v0 {

struct symbol;

/// Made by `custom<Operation>` from the members of a user's type. @see ops/user/custom.hpp
struct custom_operation {
  std::string_view name;
  /// The kernels, and the element types of their tensors. If `element<T>` of the operation is not T, the kernels convert pointers.
  shard_function<float> f32 = nullptr;
  shard_function<double> f64 = nullptr;
  dtype element_f32 = dtype::f32, element_f64 = dtype::f64;
  /// gradient(operands, y, dy, gradients) fills one gradient per operand.
  optional_function<void(const symbol* operands, const symbol& y, const symbol& dy, symbol* gradients)> gradient{};
  double flops = 0;  ///< floating-point operations per index of its rule
};

}}  // namespace gshard::v0
