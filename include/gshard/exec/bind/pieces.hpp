// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Steps whose kernels can compute a part of the result alone: elementwise ones, and einsums with a leading batch dim.

#include <gshard/core/plan/plan.hpp>
#include <gshard/exec/bind/bound_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace gshard { inline namespace v0 { namespace detail {

/// True if element i of the result depends only on elements i of the operands. False for in-place updates of parameters, which run alone.
inline bool is_elementwise(const node& n) {
  bool all = n.in_place == 0 && traits(n.kind).piecewise;
  for (std::size_t k = 0; k < n.inputs; ++k) all = all && n.rule.in[k] == n.rule.out[0];
  return all;
}

/// The first dim of a shard that has more than one index.
struct batch_dim {
  int factor = -1;
  std::int64_t extent = 0;
};
inline batch_dim leading_dim(const bound_value& v, const short_list& factors, std::size_t device) {
  for (int d = 0; d < v.rank(); ++d)
    if (v.extent(device, d) > 1) return {factors[d], v.extent(device, d)};
  return {};
}
/// The leading dim of an einsum's result, if it is a batch dim of both operands. Each block of the result needs one block of each operand.
inline batch_dim batch_of(const node& n, std::span<const bound_value> values, std::size_t device) {
  if (!is_contraction(n) || values[std::size_t(n.output())].elements(device) == 0) return {};
  const batch_dim leads = leading_dim(values[std::size_t(n.output())], n.rule.out[0], device);
  const auto has_once = [&](const short_list& factors) {
    int found = 0;
    for (int d = 0; d < factors.size(); ++d) found += factors[d] == leads.factor;
    return found == 1;
  };
  return leads.factor >= 0 && has_once(n.rule.in[0]) && has_once(n.rule.in[1]) && has_once(n.rule.out[0]) ? leads : batch_dim{};
}

}}}  // namespace gshard::v0::detail
