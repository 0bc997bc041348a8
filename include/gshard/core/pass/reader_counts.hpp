// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Counts the readers of each tensor.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// By tensor: how often live nodes, outputs and updates of parameters read it.
constexpr list<std::int32_t> reader_counts(const graph& g, const list<char>& live) {
  list<std::int32_t> counts(g.values.size(), 0);
  std::int32_t* const of = counts.data();
  const node* const nodes = g.nodes.data();
  const char* const is_live = live.data();
  for (std::size_t i = 0; i < g.nodes.size(); ++i)
    for (int k = 0; k < nodes[i].inputs && is_live[i]; ++k) ++of[nodes[i].in[k]];
  for (const port& p : g.outputs) ++of[p.value];
  for (const parameter& p : g.parameters)
    if (p.updated >= 0) ++of[p.updated];
  return counts;
}

}}}  // namespace gshard::v0::detail
