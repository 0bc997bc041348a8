// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Layer normalization over the last dim.

#include <gshard/core/base/math.hpp>
#include <gshard/core/grad/differentiator.hpp>
#include <gshard/core/ir/attributes.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/pass/decompose_cost.hpp>
#include <gshard/core/pass/decomposer.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/ops/rows/last_dim.hpp>
#include <gshard/ops/rows/row_blocks.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation layer_norm{.id = 8, .name = "layer_norm", .lines = line_dim::last, .overwrites = 0};
inline constexpr operation layer_norm_grad{.id = 9, .name = "layer_norm_grad", .lines = line_dim::last};
}  // namespace op

struct layer_norm_attributes {
  double epsilon = 0;

  static constexpr void each(auto& all, auto f) { f("epsilon", all.epsilon); }
};

namespace detail {

// Templates, so that only programs with a layer_norm pay for the functions of its maps.
template <class Used = void>
constexpr void layer_norm_gradient(differentiator& d, const node& n);
template <class Used = void>
constexpr void layer_norm_by_blocks(decomposer& d, const node& n, int at);
template <class Used = void>
constexpr void layer_norm_grad_by_blocks(decomposer& d, const node& n, int at);
template <class Used>
inline constexpr operation_rules layer_norm_rules{.of = op::layer_norm,
                                                  .gradient = layer_norm_gradient<Used>,
                                                  .by_blocks = layer_norm_by_blocks<Used>,
                                                  .cost_by_blocks = cost_of_row_sums<2>};
template <class Used>
inline constexpr operation_rules layer_norm_grad_rules{
    .of = op::layer_norm_grad, .by_blocks = layer_norm_grad_by_blocks<Used>, .cost_by_blocks = cost_of_row_sums<4>};

template <class Used>
constexpr void layer_norm_gradient(differentiator& d, const node& n) {
  builder& b = d.owner();
  const symbol dy = d.gradient(n);
  const auto like = [&](int i) { return builder::result{d.in(n, i).get().dims, dy.get().type}; };
  b.add_node(b.use(layer_norm_grad_rules<Used>), {n.input(0), n.input(1), dy.id}, rule_of_gradient(n, {0, 1}, {0, 1, 2}), n.attr,
             {like(0), like(1), like(2)});
  const std::array parts{b.result_of_last(0), b.result_of_last(1), b.result_of_last(2)};
  for (int i = 0; i < 3; ++i) d.add(n.input(i), parts[std::size_t(i)]);
}

inline constexpr auto layer_norm_square = [](auto v) { return v * v; };
inline constexpr auto layer_norm_scale = [](auto variance, auto epsilon) { return decltype(variance)(1) / sqrt(variance + epsilon); };
inline constexpr auto layer_norm_affine = [](auto v, auto gamma, auto beta) { return v * gamma + beta; };
inline constexpr auto layer_norm_slope = [](auto slope, auto v, auto a, auto b, auto scale) { return scale * (slope - a - v * b); };

struct normalized_rows {
  symbol x;      // (x - mean) / deviation
  symbol scale;  // 1 / deviation
};
template <class Used>
constexpr normalized_rows normalize(decomposer& d, symbol x, double epsilon) {
  row_blocks r(d);
  const symbol centered = r.map(own_function<arithmetic::subtract>, std::array{x, r.mean_of_rows(x)});
  const symbol variance = r.mean_of_rows(r.map(undifferentiated<when_used<Used, layer_norm_square>, 1>, std::array{centered}));
  const short_list own = counting(variance.rank());
  const symbol scale = emit_map_of(undifferentiated<when_used<Used, layer_norm_scale>, 2>,
                                   std::array{variance, emit_scale(emit_constant(pointwise_constant<1>, variance), epsilon)},
                                   std::array{own, own}, variance);
  d.set_sharding_like(scale, variance, own);
  return {r.map(own_function<arithmetic::multiply>, std::array{centered, scale}), scale};
}
template <class Used>
constexpr void layer_norm_by_blocks(decomposer& d, const node& n, int /*at*/) {
  row_blocks r(d);
  const normalized_rows x = normalize<Used>(d, d.in(n, 0), own<layer_norm_attributes>(n).epsilon);
  d.replace_result(n, 0,
                   emit_map_of(undifferentiated<when_used<Used, layer_norm_affine>, 3>,
                               std::array{x.x, d.in(n, 1), d.in(n, 2)}, std::array{r.all(x.x), r.last(x.x), r.last(x.x)}, x.x));
}
template <class Used>
constexpr void layer_norm_grad_by_blocks(decomposer& d, const node& n, int /*at*/) {
  row_blocks r(d);
  const normalized_rows x = normalize<Used>(d, d.in(n, 0), own<layer_norm_attributes>(n).epsilon);
  const symbol dy = d.in(n, 2);
  const symbol g = emit_map_of(own_function<arithmetic::multiply>, std::array{dy, d.in(n, 1)}, std::array{r.all(dy), r.last(dy)}, dy);
  d.set_sharding_like(g, dy, r.all(dy));
  const symbol product = r.map(own_function<arithmetic::multiply>, std::array{g, x.x});
  const symbol of_g = r.mean_of_rows(g), of_product = r.mean_of_rows(product);
  d.replace_result(n, 0,
                   r.map(undifferentiated<when_used<Used, layer_norm_slope>, 5>, std::array{g, x.x, of_g, of_product, x.scale}));
  d.replace_result(n, 1, r.sum(r.map(own_function<arithmetic::multiply>, std::array{dy, x.x}), r.last(dy)));
  d.replace_result(n, 2, r.sum(dy, r.last(dy)));
}

}  // namespace detail

/// layer_norm(x, gamma, beta) = (x - mean) / sqrt(variance + epsilon) * gamma + beta over the last dim.
/// Shapes: x [..., N], gamma [N], beta [N] -> the shape of x.
/// Communicates: nothing, or, if the last dim is sharded, sums per row; a reshard of x if that is cheaper.
/// Compile time: ranks, dims and element types.
/// Throws: nothing.
/// @see softmax
template <class Used = void>
constexpr symbol layer_norm(here x, symbol gamma, symbol beta, double epsilon = 1e-5) {
  builder& b = *x.owner;
  if (!detail::check_rank(b, x, 1, "layer_norm") || !detail::require_real(b, "layer_norm", {x, gamma, beta})) return b.nothing();
  const int last = x.rank() - 1;
  for (const symbol& s : {gamma, beta})
    if (s.rank() != 1 || !b.same_extent(s.get().dims[0], x.get().dims[last])) {
      b.fail(fault::dims_differ, "layer_norm", {}, s.id == beta.id ? 2 : 1, 0);
      return b.nothing();
    }
  sharding_rule rule = detail::rows_rule(x.rank());
  rule.in[1] = rule.in[2] = detail::counting(1, last);
  const attributes attr{.own = layer_norm_attributes{epsilon}};
  return {&b, b.add_node(b.use(detail::layer_norm_rules<Used>), {x.id, gamma.id, beta.id}, rule, attr, {{x.get().dims, x.get().type}})};
}

GSHARD_TAKES(layer_norm, (detail::call<3, symbol, symbol, symbol, double>::fits<Given...>),
             "layer_norm(x, gamma, beta, epsilon = 1e-5) takes three tensors of a program and a number")

}}  // namespace gshard::v0
