// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// ONNX's matrix products: MatMul, Gemm, Einsum, and products of quantized tensors.

#include <gshard/core/ir/equation.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/onnx/node/arithmetic.hpp>
#include <gshard/onnx/node/node_call.hpp>
#include <gshard/onnx/node/numpy.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx { namespace operators {

/// numpy's matmul of two tensors of one type.
inline symbol matrix_product(symbol a, symbol b) {
  const extent_list left = extents_of(a), right = extents_of(b);
  if (left.empty() || right.empty()) throw error("multiplies matrices " + text_of(left) + " and " + text_of(right));
  const std::int64_t columns = left.back(), rows = right[right.size() < 2 ? 0 : right.size() - 2];
  if (columns != rows) throw error("multiplies matrices " + text_of(left) + " and " + text_of(right));
  const auto batch_of = [](const extent_list& all) {
    return extent_list(all.begin(), all.end() - std::ptrdiff_t(std::min<std::size_t>(2, all.size())));
  };
  const extent_list batch = broadcast_extents(batch_of(left), batch_of(right));
  // Letters of the batch dims are those of the result's; a dim that is repeated is removed.
  const auto letters = [&](symbol& x, const extent_list& own, const std::string& matrix) {
    const std::size_t dims = batch_of(own).size();
    std::string text;
    int at = 0;
    for (std::size_t d = 0; d < dims; ++d) {
      const std::size_t place = batch.size() - dims + d;
      if (own[d] != batch[place])
        x = without_dim(x, at);
      else
        text += char('a' + int(place)), ++at;
    }
    return text + matrix;
  };
  const std::string one = letters(a, left, left.size() < 2 ? "y" : "xy"), other = letters(b, right, right.size() < 2 ? "y" : "yz");
  std::string result;
  for (std::size_t d = 0; d < batch.size(); ++d) {
    const char letter = char('a' + int(d));
    if (one.find(letter) == one.npos && other.find(letter) == other.npos)
      throw error("multiplies matrices " + text_of(left) + " and " + text_of(right));
    result += letter;
  }
  if (left.size() >= 2) result += 'x';
  if (right.size() >= 2) result += 'z';
  return checked(einsum(one + "," + other + "->" + result, {a, b}));
}
inline void matmul(node_call& n) {
  if (n.type(0) != n.type(1)) throw error("multiplies " + name(n.type(0)) + " and " + name(n.type(1)));
  const symbol a = n.number(0), b = n.number(1);
  n.set(0, wrapped(matrix_product(a, b), n.type(0)), n.type(0));
}

inline void gemm(node_call& n) {
  const double alpha = n.real("alpha", 1), beta = n.real("beta", 1);
  const bool turns_a = n.integer("transA", 0) != 0, turns_b = n.integer("transB", 0) != 0;
  n.ignore({"broadcast"});
  if (n.rank(0) != 2 || n.rank(1) != 2)
    throw error("multiplies tensors of " + std::to_string(n.rank(0)) + " and " + std::to_string(n.rank(1)) + " dims");
  const symbol a = n.number(0), b = n.number(1);
  if (n.extents(0)[turns_a ? 0 : 1] != n.extents(1)[turns_b ? 1 : 0])
    throw error("multiplies matrices " + text_of(n.extents(0)) + " and " + text_of(n.extents(1)));
  const std::string text = std::string(turns_a ? "yx" : "xy") + "," + (turns_b ? "zy" : "yz") + "->xz";
  symbol y = scaled(checked(einsum(text, {a, b})), alpha);
  if (n.has(2) && beta != 0) y = sum_of(y, scaled(n.number(2), beta));
  n.set(0, wrapped(y, n.type(0)), n.type(0));
}

inline void einsum_of_equation(node_call& n) {
  const std::string text = n.text("equation", "");
  std::vector<symbol> operands;
  for (std::size_t i = 0; i < n.inputs(); ++i) operands.push_back(n.number(i));
  builder& b = n.program();
  // Not the verb: it takes two letters of one dim for a mistake.
  const equation stated = detail::checked_equation(b, text, int(operands.size()), equation_form::numpy);
  checked(b.nothing());
  std::array<int, equation::most_operands> ranks{};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    ranks[i] = operands[i].rank();
    if (ranks[i] < stated.operand(int(i)).size()) n.refuse("equation");
  }
  diagnostic problem;
  const equation e = stated.has_ellipsis ? without_ellipses(stated, ranks.data(), text, problem) : stated;
  if (problem) throw error(describe(problem));
  const symbol y = detail::emit_einsum_of_many(b, list_view(operands.data(), operands.size()),
                                               list_view(e.operands.data(), operands.size()), e.output, text);
  n.set(0, wrapped(checked(y), n.type(0)), n.type(0));
}

inline constexpr operator_row linear[]{
    {"Einsum", einsum_of_equation},
    {"Gemm", gemm},
    {"MatMul", matmul},
};

}}}}  // namespace gshard::v0::onnx::operators
