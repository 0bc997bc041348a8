// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The rows of stacked tensors, which the steps of a scan and of its gradient read.

#include <gshard/core/ir/graph.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/records.hpp>
#include <gshard/core/trace/select.hpp>
#include <gshard/ops/index/gather.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// A tensor whose rows along dim 0 are tensors like this one. Dim 0 is not sharded.
template <class = void>
constexpr value stack_of(const value& row, int dim) {
  value v;
  v.type = row.type;
  v.priority = row.priority;
  v.dims.push_back(dim);
  v.layout = sharding::replicated(row.rank() + 1);
  v.layout.open = std::uint8_t(row.layout.open << 1);
  for (int d = 0; d < row.rank(); ++d) {
    v.dims.push_back(row.dims[d]);
    v.layout[d + 1] = row.layout.axes[d];
  }
  return v;
}
/// Row `index` of x along dim 0, without a check of the index.
template <class = void>
constexpr symbol emit_row(symbol x, symbol index) {
  const symbol row = gather(x, index);
  if (!row.owner->failed()) row.owner->program.nodes.back().attr.inside = true;
  return row;
}

/// The index of the row that a step reads. Steps after the last row read this row.
template <class = void>
constexpr symbol index_of_row(const scan_record::stack& x, symbol step) {
  const symbol last{step.owner, x.last_row};
  return x.last_row < 0 ? step : select(less(last, step), last, step);
}
/// The index of the step `lag` steps earlier, or 0.
template <class = void>
constexpr symbol index_before(symbol step, std::int64_t lag) {
  const symbol begins = less(step, double(lag)), before = here(step) - double(lag);
  return select(begins, 0.0, before);
}

}}}  // namespace gshard::v0::detail
