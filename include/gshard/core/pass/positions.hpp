// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The order in which devices run the nodes of a graph.

#include <gshard/core/ir/graph.hpp>
#include <gshard/core/pass/live_nodes.hpp>
#include <gshard/core/schedule/update_order.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// Sets the `place.position` of nodes in the order in which devices run them. This is the order of the program, with parameter updates
/// early. Nodes that no result needs get -1.
constexpr void set_positions(graph& g) {
  node* const nodes = g.nodes.data();
  for (std::size_t i = 0; i < g.nodes.size(); ++i) nodes[i].place.position = -1;
  std::int32_t position = 0;
  for (const std::int32_t i : update_order(g, live_nodes(g))) nodes[i].place.position = position++;
}

/// The nodes that have a position.
constexpr list<char> nodes_that_run(const graph& g) {
  list<char> run(g.nodes.size(), 1);
  for (std::size_t i = 0; i < g.nodes.size(); ++i)
    if (g.nodes.data()[i].place.position < 0) run.data()[i] = 0;
  return run;
}

}}}  // namespace gshard::v0::detail
