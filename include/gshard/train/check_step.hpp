// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Checks of optimizers: gradients have the dims of their parameters, and loss and gradients are finite. @see not_finite

#include <gshard/core/base/list.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/parameter_scope.hpp>
#include <gshard/ops/check/check_finite.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 { namespace detail {

/// True if the gradient g has the dims of its parameter. Otherwise the fault names the optimizer and the gradient, operand 1.
constexpr bool has_dims_of(symbol parameter, symbol g, std::string_view optimizer) {
  builder& b = *parameter.owner;
  if (!b.has(parameter) || !b.has(g)) return false;
  const dim_list expected = parameter.get().dims, given = g.get().dims;
  if (given.size() != expected.size())
    b.fail(fault::rank_mismatch, tensor_name("gradient of ").append(optimizer).view(), {}, expected.size(), given.size());
  else if (const int d = b.first_difference(given, expected); d < max_rank) b.fail(fault::dims_differ, optimizer, {}, 1, d);
  return !b.failed();
}

/// Marks the outputs of the program that are this loss, or terms of it, to be checked after every run. A term that is not finite makes the
/// loss not finite. The check is no node, so it changes no plan.
constexpr void check_outputs_of_loss(symbol loss) {
  builder& b = *loss.owner;
  list<std::int32_t>& found = b.checked_losses;
  const std::size_t first = found.size();
  found.push_back(loss.id);
  for (std::size_t i = first; i < found.size(); ++i) {
    const std::int32_t maker = b.program.at(found[i]).producer;
    if (maker < 0) continue;
    const node& n = b.program.nodes[std::size_t(maker)];
    const operation& kind = traits(n.kind);
    const bool is_sum = kind.linear == linearity::of_function ? n.attr.function->linear : kind.linear == linearity::always;
    const bool passes = kind.alias || kind.checks || (is_sum && n.attr.factor != 0);
    for (int k = 0; k < n.inputs && passes; ++k)
      if (b.program.at(n.input(k)).rank() == 0) found.push_back(n.input(k));
  }
}

/// A scalar of this element type that is 0 if the loss and all gradients are finite.
constexpr symbol emit_not_finite_of(symbol loss, const list<symbol>& gradients, dtype type) {
  builder& b = *loss.owner;
  symbol sum = emit_count_not_finite(loss);
  if (!b.failed() && sum.get().type != type) sum = emit_cast(sum, type);
  for (std::size_t i = 0; i < gradients.size() && !b.failed(); ++i) {
    const symbol count = emit_count_not_finite(gradients[i]);
    if (!b.failed()) sum = emit_map(b, pointwise_add, std::array<symbol, 2>{sum, count});
  }
  return sum;
}

/// Prepares the checks of an optimizer. Returns the scalar that is not 0 if a step is skipped, or nothing if steps are not skipped.
constexpr symbol prepare_checks(symbol loss, const list<symbol>& gradients, not_finite policy) {
  builder& b = *loss.owner;
  if (b.failed() || gradients.empty()) return b.nothing();
  if (policy == not_finite::stop) check_outputs_of_loss(loss);
  if (policy != not_finite::skip) return b.nothing();
  const symbol skipped = b.skipped = emit_not_finite_of(loss, gradients, gradients[0].get().type);
  for (std::size_t i = 0; i < b.program.parameters.size(); ++i)  // variables that the model has updated before
    if (const parameter p = b.program.parameters[i]; p.updated >= 0 && !p.of_optimizer)
      b.program.parameters[i].updated = emit_unless_skipped({&b, p.value}, {&b, p.updated}).id;
  return skipped;
}

}}}  // namespace gshard::v0::detail
