// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Optimizer states and updates that are sharded over one more mesh axis than their parameters (ZeRO).

#include <gshard/core/base/list.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 { namespace detail {

/// Shards a tensor like the parameter p, and over one more axis. `dims`: for each dim of the tensor, the corresponding dim of p. Does
/// nothing if `axis` is empty.
constexpr void shard_as(builder& b, std::string_view axis, symbol p, std::int32_t tensor, const short_list& dims) {
  if (axis.empty() || b.failed()) return;
  const int a = b.mesh.find(axis);
  if (a < 0) return b.fail(fault::unknown_axis, "shard_state_over", axis);
  b.program.further.push_back({tensor, p.id, a, dims});
}
constexpr void shard_as(builder& b, std::string_view axis, symbol p, symbol tensor) {
  shard_as(b, axis, p, tensor.id, counting(p.rank()));
}

/// Shards each gradient like its parameter, and over the axis, so that it is reduce-scattered to the devices that update shares of the
/// parameter.
constexpr void shard_gradients(builder& b, std::string_view axis, const list<symbol>& parameters, list<symbol>& gradient) {
  for (std::size_t i = 0; i < gradient.size() && !axis.empty() && !b.failed(); ++i) {
    gradient[i] = emit_annotate(gradient[i], sharding::unconstrained(gradient[i].rank()));
    shard_as(b, axis, parameters[i], gradient[i]);
  }
}

/// Shards all tensors of an update that have dims of p, such as the means of its rows. `first`: the number of tensors in the program before
/// the update. Starting from p and its gradient g, the rules of the nodes give the dims of p in each tensor: dims with the same factor in a
/// node are the same dim of p.
constexpr void shard_update(builder& b, std::string_view axis, symbol p, symbol g, std::size_t first) {
  if (axis.empty() || b.failed()) return;
  const graph& program = b.program;
  const auto from = std::int32_t(first), end = std::int32_t(program.nodes.size());
  list<short_list> dims_of(program.values.size() - first);  // by tensor: the dim of p for each of its dims; empty if not known
  const auto pass_dims = [&](const node& n) {
    int dim_of[short_list::largest + 1];  // by factor
    for (int& d : dim_of) d = -1;
    const auto read = [&](std::int32_t v, const short_list& factors) {
      const short_list dims = v == p.id || v == g.id ? counting(p.rank()) : v >= from ? dims_of[std::size_t(v - from)] : short_list{};
      for (int d = 0; d < dims.size(); ++d) dim_of[factors[d]] = dims[d];
    };
    const auto write = [&](std::int32_t v, const short_list& factors) {
      short_list dims;
      for (int d = 0; d < factors.size(); ++d)
        if (dim_of[factors[d]] >= 0) dims.push_back(dim_of[factors[d]]);
      if (v >= from && dims.size() == factors.size()) dims_of[std::size_t(v - from)] = dims;
    };
    for (int i = 0; i < n.inputs; ++i) read(n.input(i), n.rule.in[i]);
    for (int i = 0; i < n.outputs; ++i) read(n.output(i), n.rule.out[i]);
    for (int i = 0; i < n.inputs; ++i) write(n.input(i), n.rule.in[i]);
    for (int i = 0; i < n.outputs; ++i) write(n.output(i), n.rule.out[i]);
  };
  std::int32_t begin = -1;  // the first node of the update
  for (std::size_t v = first; v < program.values.size() && begin < 0; ++v) begin = program.values[v].producer;
  if (begin < 0) return;
  for (std::int32_t i = begin; i < end; ++i) pass_dims(program.nodes[std::size_t(i)]);
  for (std::int32_t i = end; i-- > begin;) pass_dims(program.nodes[std::size_t(i)]);
  for (std::size_t i = 0; i < dims_of.size(); ++i)
    if (!dims_of[i].empty()) shard_as(b, axis, p, std::int32_t(first + i), dims_of[i]);
}

}}}  // namespace gshard::v0::detail
