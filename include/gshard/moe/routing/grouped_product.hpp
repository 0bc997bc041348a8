// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The product of the rows of each expert with its matrix, without capacity slots.

#include <gshard/core/grad/differentiator.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/moe/routing/routing.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation grouped_product{.id = 46, .name = "grouped_product", .routes = true, .product = true, .grouped = true};
inline constexpr operation grouped_weight_grad{.id = 47, .name = "grouped_weight_grad", .routes = true, .product = true, .grouped = true};
}  // namespace op

namespace detail {

namespace route {
// The operands and results of grouped products, in which an expert group has experts of its own.
inline constexpr short_list product_rows = factors({expert_group, group, place, model});
inline constexpr short_list product_results = factors({expert_group, group, place, hidden});
inline constexpr short_list matrices = factors({expert_group, expert, model, hidden});
inline constexpr short_list transposed_matrices = factors({expert_group, expert, hidden, model});
inline constexpr short_list row_counts = factors({expert_group, group, expert});

/// The common part of the rules of grouped products: a device has all rows and all experts of its groups.
constexpr sharding_rule grouped() {
  sharding_rule r = base();
  r.block(expert);
  return r;
}

/// The rule of op::expert_rows, whose operand are slots.
constexpr sharding_rule expert_rows() {
  sharding_rule r = base();
  for (const int f : {token, expert, expert_group}) r.block(f);
  r.in[0] = chosen;
  r.set_results({chosen, row_counts, factors({group})});
  return r;
}
}  // namespace route

constexpr void expert_rows_gradient(differentiator& d, const node& n);
constexpr void grouped_product_gradient(differentiator& d, const node& n);
constexpr void grouped_weight_grad_gradient(differentiator& d, const node& n);
constexpr std::int32_t counts_of_products(const graph& g, const node& n);
inline constexpr operation_rules expert_rows_rules{.of = op::expert_rows, .gradient = expert_rows_gradient};
inline constexpr operation_rules grouped_product_rules{
    .of = op::grouped_product, .gradient = grouped_product_gradient, .row_counts = counts_of_products};
inline constexpr operation_rules grouped_weight_grad_rules{.of = op::grouped_weight_grad, .gradient = grouped_weight_grad_gradient};

/// op::grouped_product: y[n,g,r,f] = sum over m of x[n,g,r,m] * w[n,e,m,f] for the expert e of row r, zero in rows of no expert. count
/// [n,g,e]: the number of rows of each expert. Rows are sorted by expert. `transposed`: w is [n,e,f,m].
constexpr symbol emit_grouped_product(symbol x, symbol w, symbol count, bool transposed, bool rounds) {
  builder& b = *x.owner;
  if (b.failed()) return b.nothing();
  dim_list dims = x.get().dims;
  dims.set(3, w.get().dims[transposed ? 2 : 3]);
  sharding_rule rule = route::grouped();
  const short_list &matrices = transposed ? route::transposed_matrices : route::matrices;
  rule.set_operands({route::product_rows, matrices, route::row_counts});
  rule.out[0] = route::product_results;
  return {&b, b.add_node(b.use(grouped_product_rules), {x.id, w.id, count.id}, rule, {.rounds_to_bf16 = rounds},
                         {{dims, x.get().type}})};
}

/// op::grouped_weight_grad: dw[n,e,m,f] = sum over g and the rows r of expert e of x[n,g,r,m] * dy[n,g,r,f]. JAX calls this a ragged dot
/// with a ragged contracting dim.
constexpr symbol emit_grouped_weight_grad(symbol x, symbol dy, symbol count, const dim_list& dims, bool rounds) {
  builder& b = *x.owner;
  sharding_rule rule = route::grouped();
  rule.set_operands({route::product_rows, route::product_results, route::row_counts});
  rule.out[0] = route::matrices;
  return {&b, b.add_node(b.use(grouped_weight_grad_rules), {x.id, dy.id, count.id}, rule, {.rounds_to_bf16 = rounds},
                         {{dims, x.get().type}})};
}

/// Rows and counts have no gradient.
constexpr void expert_rows_gradient(differentiator&, const node&) {}
/// y = x w.
constexpr void grouped_product_gradient(differentiator& d, const node& n) {
  const bool transposed = n.rule.in[1].same(route::transposed_matrices), rounds = n.attr.rounds_to_bf16;
  const symbol x = d.in(n, 0), w = d.in(n, 1), count = d.in(n, 2);
  if (d.wants(n, 0)) d.add(n.input(0), emit_grouped_product(d.gradient(n), w, count, !transposed, rounds));
  if (!d.wants(n, 1)) return;
  const symbol dy = d.gradient(n);
  d.add(n.input(1), emit_grouped_weight_grad(transposed ? dy : x, transposed ? x : dy, count, w.get().dims, rounds));
}
/// dw = x^T dy. With g, the gradient of dw: that of x is dy g^T, that of dy is x g.
constexpr void grouped_weight_grad_gradient(differentiator& d, const node& n) {
  for (int i = 0; i < 2; ++i)
    if (d.wants(n, i)) d.add(n.input(i), emit_grouped_product(d.in(n, 1 - i), d.gradient(n), d.in(n, 2), i == 0, n.attr.rounds_to_bf16));
}
constexpr std::int32_t counts_of_products(const graph& g, const node& n) { return counts_of_expert_rows(g, n.in[2]); }

}  // namespace detail

}}  // namespace gshard::v0
