// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The table of ONNX's operators that gshard imports.

#include <gshard/onnx/node/node_call.hpp>
#include <gshard/onnx/operators/binary.hpp>
#include <gshard/onnx/operators/control.hpp>
#include <gshard/onnx/operators/convolution.hpp>
#include <gshard/onnx/operators/elementwise.hpp>
#include <gshard/onnx/operators/experts.hpp>
#include <gshard/onnx/operators/indexing.hpp>
#include <gshard/onnx/operators/linear.hpp>
#include <gshard/onnx/operators/loss.hpp>
#include <gshard/onnx/operators/normalization.hpp>
#include <gshard/onnx/operators/quantized.hpp>
#include <gshard/onnx/operators/recurrent.hpp>
#include <gshard/onnx/operators/reduce.hpp>
#include <gshard/onnx/operators/resize.hpp>
#include <gshard/onnx/operators/shape.hpp>
#include <gshard/onnx/operators/signal.hpp>
#include <gshard/onnx/program/fold.hpp>

#include <span>
#include <string_view>

namespace gshard { inline namespace v0 { namespace onnx {

/// All operators, a table for each family.
inline constexpr std::span<const operator_row> operator_tables[]{
    folding::known_tensors, operators::elementwise,  operators::binary,       operators::shapes,  operators::indexing,
    operators::reductions,  operators::linear,       operators::convolutions, operators::resizes, operators::normalizations,
    operators::recurrent,   operators::quantization, operators::losses,       operators::control, operators::signals,
    operators::experts,
};

/// The operator of a domain, or null.
inline const operator_row* find_operator(std::string_view domain, std::string_view name) {
  for (const std::span<const operator_row> table : operator_tables)
    for (const operator_row& row : table)
      if (row.name == name && row.domain == domain) return &row;
  return nullptr;
}

}}}  // namespace gshard::v0::onnx
