// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Optimizer states and updates that are sharded over one more mesh axis than their parameters (ZeRO).

#include <gshard/base/list.hpp>
#include <gshard/trace/builder.hpp>
#include <gshard/trace/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 { namespace detail {

/// Shards a tensor that has these dims of a parameter as the parameter, and over the axis. No axis: nothing.
constexpr void shard_as(builder& b, std::string_view axis, symbol p, std::int32_t tensor, const short_list& dims) {
  if (axis.empty() || b.failed()) return;
  const int a = b.mesh.find(axis);
  if (a < 0) return b.fail(fault::unknown_axis, "shard_state_over", axis);
  b.program.further.push_back({tensor, p.id, a, dims});
}
constexpr void shard_as(builder& b, std::string_view axis, symbol p, symbol tensor) {
  shard_as(b, axis, p, tensor.id, counting(p.rank()));
}

/// The same for gradients: each is reduce-scattered to the devices that update a share of the parameter.
constexpr void shard_gradients(builder& b, std::string_view axis, const list<symbol>& parameters, list<symbol>& gradient) {
  for (std::size_t i = 0; i < gradient.size() && !axis.empty() && !b.failed(); ++i) {
    gradient[i] = emit_annotate(gradient[i], sharding::unconstrained(gradient[i].rank()));
    shard_as(b, axis, parameters[i], gradient[i]);
  }
}

/// The same for all tensors of the program from number `first` on that have the dims of p, its rows or its columns. If rows and columns
/// have the same dims, as those of "MM", they stay whole.
constexpr void shard_update(builder& b, std::string_view axis, symbol p, std::size_t first) {
  if (axis.empty() || b.failed() || p.rank() == 0) return;
  const dim_list all = p.get().dims;
  const int last = p.rank() - 1;
  dim_list rows = all, columns = all;
  rows.pop_back();
  short_list of_columns = counting(last);
  if (last > 0) {
    columns.pop_back();
    columns.set(last - 1, all[last]);
    of_columns.set(last - 1, last);
  }
  for (std::size_t v = first; v < b.program.values.size(); ++v) {
    const dim_list dims = b.program.values[v].dims;
    if (dims.same(all)) shard_as(b, axis, p, std::int32_t(v), counting(last + 1));
    else if (last > 0 && dims.same(rows) && !rows.same(columns)) shard_as(b, axis, p, std::int32_t(v), counting(last));
    else if (last > 0 && dims.same(columns) && !rows.same(columns)) shard_as(b, axis, p, std::int32_t(v), of_columns);
  }
}

}}}  // namespace gshard::v0::detail
