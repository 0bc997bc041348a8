// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The partitioning strategy of one node: the factor that each mesh axis shards, and the resulting shardings of operands and results.

#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/ir/reduction.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The mesh axes that shard each factor, major to minor.
struct factor_axes {
  static constexpr int factors = short_list::largest + 1;
  short_list of[factors]{};
  constexpr short_list& operator[](int factor) { return of[factor]; }
  constexpr const short_list& operator[](int factor) const { return of[factor]; }
};

/// How a node is partitioned. A factor is an index letter of the node's rule, such as B, M or N of "BM,MN->BN".
struct strategy {
  constexpr explicit strategy(int axes_of_mesh) : mesh_axes(axes_of_mesh) {}

  int mesh_axes;
  /// The factor that each mesh axis shards, or -1: the work is replicated over the axis.
  int factor_of_axis[max_axes]{-1, -1, -1, -1, -1, -1, -1, -1};
  factor_axes axes_of_factor{};
  /// For a convolution: each device keeps its block of the first operand and reads the second through a window, instead of the reverse.
  bool keeps_first_operand = false;
  std::uint8_t order = 0;  ///< The order of the devices (core/ir/device_order.hpp).
};

/// The mesh axes over which the operands of a node are partial, and therefore its result.
struct partial_state {
  std::uint8_t axes = 0;
  reduction what = reduction::sum;
  bool per_operand = false;  ///< Each operand of a product is partial over axes of its own:
  std::uint8_t second = 0;   ///< operand 1 over these, operand 0 over the others.
  bool declared = false;     ///< Only the result is partial, as the program declares.

  constexpr partial_state of_operand(int i) const {
    if (declared) return {};
    return per_operand ? partial_state{std::uint8_t(i == 0 ? axes & ~second : second), what} : *this;
  }
};

/// A strategy together with the partial sums that it keeps.
struct partitioning {
  strategy how;
  partial_state partial;
};

/// True if a partial sum of the operands may pass through the node unchanged.
constexpr bool is_linear(const node& n) {
  switch (traits(n.kind).linear) {
    case linearity::always: return true;
    case linearity::of_function: return n.attr.function->linear;
    case linearity::product: return n.inputs == 1;
    default: return false;
  }
}
/// True if a partial sum may pass through the node, if that costs less than completing it before. The node is a product that is linear in
/// at least one of two operands, or it moves the elements of its operand.
constexpr bool may_pass_partial(const node& n) {
  const linearity l = traits(n.kind).linear;
  if (n.inputs == 1) return l == linearity::one_operand && n.attr.fill == 0;
  return n.inputs == 2 && (l == linearity::product || (l == linearity::of_function && n.attr.function->linear_operands != 0));
}
/// True if a partial sum in operand i makes the result of a product a partial sum. An einsum is linear in both operands, a quotient in the
/// first, a lookup in the operand of elements: row (a + b) of a table is not row a plus row b.
constexpr bool is_linear_in(const node& n, int i) {
  static_assert((arithmetic::divide::types & integers) == 0, "gshard: a quotient of integers, which is rounded, is not linear");
  if (!may_pass_partial(n) || i >= n.inputs || i == traits(n.kind).ids) return false;
  return traits(n.kind).linear != linearity::of_function || ((n.attr.function->linear_operands >> i) & 1u) != 0;
}

/// The sharding of a tensor whose dims are these factors.
constexpr sharding sharding_of(const short_list& dims, const strategy& how, const partial_state& partial) {
  sharding s;
  s.rank = dims.count;
  std::uint32_t factors = dims.bits;  // read without calls, since this is the planner's innermost loop
  for (int d = 0; d < dims.count; ++d, factors >>= short_list::width)
    if (const short_list& axes = how.axes_of_factor.of[factors & short_list::largest]; axes.count > 0) {
      s.axes[d] = axes;
      s.order = how.order;
    }
  s.partial = partial.axes;
  s.pending = partial.what;
  return s;
}

/// The sharding in which a node makes result o. An axis that shards a factor that the result lacks leaves a partial sum.
constexpr sharding result_sharding(const node& n, int o, const strategy& how, const partial_state& partial) {
  const short_list& dims = n.rule.out[o];
  sharding s = sharding_of(dims, how, partial);
  for (int a = 0; a < how.mesh_axes; ++a)
    if (how.factor_of_axis[a] >= 0 && !dims.contains(how.factor_of_axis[a])) s.partial = std::uint8_t(s.partial | (1u << a));
  if (s.partial != partial.axes) s.pending = n.attr.combine;
  return s;
}

}}}  // namespace gshard::v0::detail
