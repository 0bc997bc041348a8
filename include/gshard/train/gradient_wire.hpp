// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The format in which optimizers sum gradients between devices: in their own type, or in bf16 with or without error feedback.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/dtype.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/parameter_scope.hpp>
#include <gshard/core/trace/wire.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation feedback{.id = 53, .name = "feedback", .of_addends = true};
}  // namespace op

/// The format of an optimizer's gradients between devices. full: their own type. bf16: as in `on_wire<bfloat16>`. bf16_with_feedback: also
/// bf16, but each device keeps the rounding error of its addend, its residual r. It sends s = bf16(g + r), and keeps g + r - s for the next
/// step. Over all steps, the values sent by a device and its last residual therefore add up to its gradients. Only g + r is rounded, to the
/// gradient's own type. Roundings of partial sums between devices are not fed back.
///
/// The residual of a parameter "w" is the state "residual.w", with a leading dim: one block for each of the devices that sum. Checkpoints
/// with optimizer state contain it. It is empty if the gradient is no sum between devices. Gradients of experts with replicas are summed in
/// their own type: they are rounded after the sum. @see on_wire, adam, adafactor
enum class gradient_wire : std::uint8_t { full, bf16, bf16_with_feedback };

namespace detail {

/// op::feedback: the gradient g of parameter p, rounded to bf16 with error feedback. The partitioner sets the leading dim of the residual,
/// because it knows which devices hold addends of g.
constexpr symbol emit_feedback(const parameter_scope& m, symbol p, symbol g) {
  builder& b = m.owner();
  if (!b.has(p) || !require_real(b, "gradient_wire", {g})) return b.nothing();
  if (p.rank() >= max_rank) {
    b.fail(fault::rank_mismatch, "gradient_wire", {}, max_rank - 1, p.rank());
    return b.nothing();
  }
  parameter state;
  state.trainable = false;
  state.of_optimizer = true;
  state.name = tensor_name("residual.").append(b.program.parameters[std::size_t(p.get().parameter)].name.view());
  dim_list dims;
  dims.push_back(b.blocks_dim(0, 0));
  for (int d = 0; d < p.rank(); ++d) dims.push_back(p.get().dims[d]);
  if (b.failed()) return b.nothing();
  const symbol residual = b.add_parameter(state, dims, g.get().type);
  sharding_rule rule;
  const short_list all = counting(g.rank());
  short_list blocks;
  blocks.push_back(g.rank());
  for (int d = 0; d < g.rank(); ++d) blocks.push_back(d);
  rule.set_operands({blocks, all});
  rule.set_results({blocks, all});
  rule.block(g.rank());
  b.add_node(op::feedback, {residual.id, g.id}, rule, {}, {{dims, g.get().type}, {g.get().dims, g.get().type}});
  node& n = b.program.nodes.back();
  n.in_place = 1;
  if (const std::int32_t maker = g.get().producer; maker >= 0) n.place = b.program.nodes[std::size_t(maker)].place;
  b.set_updated(residual, b.result_of_last(0));
  return b.result_of_last(1);
}

/// The gradients in the format for communication.
constexpr list<symbol> gradients_on_wire(const parameter_scope& m, const list<symbol>& parameters, list<symbol> gradients,
                                         gradient_wire how) {
  const line_of_call kept(m.owner());
  for (std::size_t i = 0; i < gradients.size() && how != gradient_wire::full && !m.owner().failed(); ++i) {
    symbol& g = gradients[i];
    if (how == gradient_wire::bf16_with_feedback) g = emit_feedback(m, parameters[i], g);
    if (!m.owner().failed()) g = on_wire<bfloat16>(g);
  }
  return gradients;
}

}  // namespace detail

}}  // namespace gshard::v0
