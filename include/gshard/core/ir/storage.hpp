// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Finds tensors that share storage: views with their originals, and results with the operands that they overwrite.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The original of a view; v itself if it is no view.
constexpr std::int32_t storage_of(const value* values, const node* nodes, std::int32_t v) {
  for (std::int32_t p = values[v].producer; p >= 0 && traits(nodes[p].kind).alias; p = values[v].producer) v = nodes[p].in[0];
  return v;
}

/// By value: the first value in the same storage. Views share storage, and so do results that overwrite operands.
// Plain arrays and few calls, because the constexpr evaluator keeps the result of every call.
constexpr list<std::int32_t> storage_roots(const list<node>& nodes, std::size_t values) {
  list<std::int32_t> roots(values, 0);
  std::int32_t* const root = roots.data();
  for (std::size_t v = 0; v < values; ++v) root[v] = std::int32_t(v);
  const node* const all = nodes.data();
  const std::size_t count = nodes.size();
  for (std::size_t i = 0; i < count; ++i) {
    const node& n = all[i];
    const int shared = traits(n.kind).alias ? 1 : n.in_place;
    for (int o = 0; o < shared; ++o) root[n.out[o]] = root[n.in[o]];
  }
  return roots;
}

}}}  // namespace gshard::v0::detail
