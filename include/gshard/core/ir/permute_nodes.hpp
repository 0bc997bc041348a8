// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Puts the nodes of a graph into another order.

#include <gshard/core/ir/graph.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// Puts the nodes of a graph into another order. `from`: for each new position, the node that moves there. It is overwritten.
constexpr void permute_nodes(graph& g, std::int32_t* from) {
  node* const nodes = g.nodes.data();
  value* const values = g.values.data();
  const auto count = std::int32_t(g.nodes.size());
  for (std::int32_t i = 0; i < count; ++i) {  // along the cycles of the permutation, as copies of nodes are slow
    if (from[i] < 0 || from[i] == i) continue;
    const node first = nodes[i];
    std::int32_t to = i;
    for (std::int32_t source = from[to]; source != i; source = from[to]) {
      nodes[to] = nodes[source];
      from[to] = -1;
      to = source;
    }
    nodes[to] = first;
    from[to] = -1;
  }
  for (std::int32_t i = 0; i < count; ++i)
    for (int o = 0; o < nodes[i].outputs; ++o) values[nodes[i].out[o]].producer = i;
}

}}}  // namespace gshard::v0::detail
