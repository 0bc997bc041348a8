// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Gradients of the operations that route tokens to experts: gating, dispatch, combine and products of experts.

#include <gshard/base/list_view.hpp>
#include <gshard/trace/builder.hpp>
#include <gshard/trace/routing.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// op::combine_weight_grad: dweight[g,s,k] = <h[e,g,c,:], dy[g,s,:]> at slot[g,s,k] = e * C + c. `from` and `out`: the factors of h and dy.
constexpr symbol emit_combine_weight_grad(symbol slot, symbol h, const short_list& from, symbol dy, const short_list& out) {
  builder& b = *h.owner;
  sharding_rule rule = route::base();
  rule.in[0] = from;
  rule.in[1] = rule.out[0] = route::slots_of(out);
  rule.in[2] = out;
  return {&b, b.add_node(op::combine_weight_grad, {h.id, slot.id, dy.id}, rule, {}, {{slot.get().dims, h.get().type}})};
}

/// op::one_hot_grad: dweight[g,s,k] = d[g,s,e,c] at slot[g,s,k] = e * C + c.
constexpr symbol emit_one_hot_grad(symbol slot, symbol d) {
  builder& b = *d.owner;
  sharding_rule rule = route::base();
  rule.in[0] = route::mask;
  rule.in[1] = route::chosen;
  rule.out[0] = route::chosen;
  return {&b, b.add_node(op::one_hot_grad, {d.id, slot.id}, rule, {}, {{slot.get().dims, d.get().type}})};
}

/// op::grouped_weight_grad: dw[n,e,m,f] = sum over g and the rows r of expert e of x[n,g,r,m] * dy[n,g,r,f]. JAX calls this a ragged dot
/// with a ragged contracting dim.
constexpr symbol emit_grouped_weight_grad(symbol x, symbol dy, symbol count, const dim_list& dims, bool rounds) {
  builder& b = *x.owner;
  sharding_rule rule = route::grouped();
  rule.set_operands({route::product_rows, route::product_results, route::row_counts});
  rule.out[0] = route::matrices;
  return {&b, b.add_node(op::grouped_weight_grad, {x.id, dy.id, count.id}, rule, {.rounds_to_bf16 = rounds}, {{dims, x.get().type}})};
}

/// op::expert_group_slots_grad: dweight[g,s,k] from the gradient of the weights of rows.
constexpr symbol emit_expert_group_slots_grad(symbol slot, symbol row, symbol dweight, const attributes& attr) {
  builder& b = *dweight.owner;
  const sharding_rule forward = route::expert_group_slots();
  sharding_rule rule;
  rule.blocked = forward.blocked;
  rule.set_operands({forward.in[0], forward.out[0], forward.out[2]});
  rule.out[0] = forward.in[1];
  return {&b, b.add_node(op::expert_group_slots_grad, {slot.id, row.id, dweight.id}, rule, attr, {{slot.get().dims, dweight.get().type}})};
}

/// op::top_k_gating_grad: the derivative of gates, from the derivatives of weights and of the auxiliary loss.
constexpr symbol emit_gating_grad(builder& b, const node& n, symbol dweight, symbol daux) {
  sharding_rule r = route::base();
  r.blocked = n.rule.blocked;
  std::array<std::int32_t, 7> ids{n.input(0), n.output(0), dweight.id, daux.id};
  r.set_operands({n.rule.in[0], n.rule.out[0], n.rule.out[1], n.rule.out[2]});
  for (int i = 1; i < n.inputs; ++i) {
    ids[std::size_t(i) + 3] = n.input(i);
    r.in[std::size_t(i) + 3] = n.rule.in[std::size_t(i)];
  }
  r.out[0] = n.rule.in[0];
  const value gates = b.program.at(n.input(0));
  return {&b, b.add_node(op::top_k_gating_grad, list_view(ids.data(), std::size_t(n.inputs) + 3), r, n.attr, {{gates.dims, gates.type}})};
}

/// The gradient of operand i of a routing node; empty if it has none. gradient(o): the gradient of result o.
template <class Gradient>
constexpr symbol emit_routing_grad(builder& b, const node& n, int i, const Gradient& gradient) {
  const auto in = [&](int k) { return symbol{&b, k < n.inputs ? n.input(k) : -1}; };
  const short_list &from = n.rule.in[0], &to = n.rule.out[0];
  switch (n.kind->id) {
    case op::top_k_gating.id: {
      if (i != 0) return b.nothing();
      const symbol dweight = gradient(1);
      return emit_gating_grad(b, n, dweight, gradient(2));
    }
    case op::expert_group_slots.id:
      return i == 1 ? emit_expert_group_slots_grad(in(0), {&b, n.output(0)}, gradient(2), n.attr) : b.nothing();
    case op::expert_rows.id: return b.nothing();
    case op::grouped_product.id: {  // y = x w
      if (i == 2) return b.nothing();
      const symbol d = gradient(0);
      const bool transposed = n.rule.in[1].same(route::transposed_matrices);
      if (i == 0) return emit_grouped_product(d, in(1), in(2), !transposed, n.attr.rounds_to_bf16);
      return emit_grouped_weight_grad(transposed ? d : in(0), transposed ? in(0) : d, in(2), in(1).get().dims, n.attr.rounds_to_bf16);
    }
    case op::grouped_weight_grad.id:  // dw = x^T dy. With d, the gradient of dw: that of x is dy d^T, that of dy is x d
      return i == 2 ? b.nothing() : emit_grouped_product(in(1 - i), gradient(0), in(2), i == 0, n.attr.rounds_to_bf16);
    case op::one_hot.id: return i == 1 ? emit_one_hot_grad(in(0), gradient(0)) : b.nothing();
    case op::dispatch.id:
      if (i == 0) return emit_combine(in(1), in(2), gradient(0), to, from, in(0).get().dims);
      return i == 2 ? emit_combine_weight_grad(in(1), gradient(0), to, in(0), from) : b.nothing();
    case op::combine.id:
      if (i == 0) return emit_dispatch(in(1), in(2), gradient(0), to, from, in(0).get().dims);
      return i == 2 ? emit_combine_weight_grad(in(1), in(0), from, gradient(0), to) : b.nothing();
    default: b.fail(fault::not_differentiable, name(n.kind)); return b.nothing();
  }
}

}}}  // namespace gshard::v0::detail
