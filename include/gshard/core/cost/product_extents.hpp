// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The extents of a matrix product: batch, rows, columns and contracted extent of an einsum on one device.

#include <gshard/core/base/counting.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/core/reshard/cost.hpp>

#include <algorithm>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// The extents of an einsum of two operands on the device with the largest shards, as `batch` products of matrices. For a grouped product,
/// each expert has equally many rows.
struct product_extents {
  std::int64_t batch = 1, rows = 1, columns = 1, contracted = 1;

  constexpr std::int64_t smallest() const { return std::min({rows, columns, contracted}); }
};

constexpr product_extents extents_of_product(const plan_view& plan, const node& n, const extents& e) {
  product_extents p;
  const bool fused = traits(n.kind).fused_products > 0;  // then the extents are those of its first product
  const bool grouped = traits(n.kind).grouped;
  if (n.inputs != 2 && !fused && !grouped) return p;
  std::uint32_t seen = grouped ? 1u << n.rule.in[2].back() : 0;
  for (int i = 0; i < 2; ++i) {
    const value& x = plan.at(n.input(i));
    for (int d = 0; d < x.rank(); ++d) {
      const int factor = n.rule.in[i][d];
      if ((seen >> factor) & 1u) continue;
      seen |= 1u << factor;
      const bool shared = n.rule.in[1 - i].contains(factor), kept = n.rule.out[0].contains(factor) && !(fused && n.rule.is_blocked(factor));
      (shared && kept ? p.batch : shared ? p.contracted : i == 0 ? p.rows : p.columns) *= shard_extent(x.dims[d], x.layout[d], e);
    }
  }
  if (!grouped) return p;
  const value& count = plan.at(n.input(2));
  const int last = count.rank() - 1;
  const std::int64_t experts = std::max<std::int64_t>(1, shard_extent(count.dims[last], count.layout[last], e));
  std::int64_t& rows = n.rule.out[0].contains(n.rule.in[0][2]) ? p.rows : p.contracted;
  rows = std::max<std::int64_t>(1, rows / experts);
  p.batch = detail::saturating_product(p.batch, experts);
  return p;
}

}}  // namespace gshard::v0
