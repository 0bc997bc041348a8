// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Random tensors, with numbers that do not depend on the sharding: uniform and normal.

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/ir/attributes.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/parameter_scope.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation random{.id = 40, .name = "random"};
}  // namespace op

struct random_attributes {
  bool normal = false;  ///< standard normal numbers, not uniform ones

  static constexpr void each(auto& all, auto f) { f("normal", all.normal); }
};

namespace detail {
/// op::random: random numbers of these dims.
constexpr symbol emit_random(builder& b, const dim_list& dims, dtype type, bool normal) {
  if (!b.failed() && !is_real(type)) b.fail_type(normal ? "normal" : "uniform", "type of m", type, reals);
  if (b.failed()) return b.nothing();
  sharding_rule rule;
  rule.out[0] = counting(dims.size());
  return {&b, b.add_node(op::random, {}, rule, {.key = b.next_random_key(), .own = random_attributes{normal}}, {{dims, type}})};
}
inline constexpr auto gumbel_of_uniform = [](auto u) { return -log(-log(u)); };
/// Noise of these dims with the Gumbel distribution: -log(-log u), u uniform in [0, 1). The index of the largest of log p_i + noise_i has
/// the probabilities p_i.
constexpr symbol emit_gumbel(builder& b, const dim_list& dims, dtype type) {
  return map<gumbel_of_uniform>(emit_random(b, dims, type, false));
}
}  // namespace detail

/// uniform<"BT">(m): random numbers, uniform in [0, 1), in the element type of the parameters. The number at global index i depends on
/// (seed, step, operation, i) alone: it is the same with every sharding, and another in every step.
/// Shapes: the dims of the letters.
/// Communicates: nothing; every device computes its shard.
/// Compile time: that the program knows the letters.
/// Throws: nothing.
/// @see normal, dropout
template <fixed_string Letters>
constexpr symbol uniform(const parameter_scope& m) {
  return detail::emit_random(m.owner(), m.owner().dims_of(Letters.view(), "uniform"), m.type(), false);
}
/// normal<"BT">(m): random numbers of mean 0 and deviation 1, as uniform.
/// Shapes: the dims of the letters.
/// Communicates: nothing; every device computes its shard.
/// Compile time: that the program knows the letters.
/// Throws: nothing.
/// @see uniform
template <fixed_string Letters>
constexpr symbol normal(const parameter_scope& m) {
  return detail::emit_random(m.owner(), m.owner().dims_of(Letters.view(), "normal"), m.type(), true);
}

template <fixed_string Letters = "", class... Given>
  requires(detail::left_out<Letters> || !detail::call<1, parameter_scope>::fits<Given...>)
constexpr auto uniform(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: uniform<\"BT\">(m) takes the letters of dims and the first argument of the model");
  return detail::refused(given...);
}
template <fixed_string Letters = "", class... Given>
  requires(detail::left_out<Letters> || !detail::call<1, parameter_scope>::fits<Given...>)
constexpr auto normal(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: normal<\"BT\">(m) takes the letters of dims and the first argument of the model");
  return detail::refused(given...);
}

}}  // namespace gshard::v0
