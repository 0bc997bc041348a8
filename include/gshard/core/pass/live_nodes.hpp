// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Finds the nodes of a graph that its results need.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The nodes on which outputs and updated parameters depend.
constexpr list<char> live_nodes(const graph& g) {
  list<char> live(g.nodes.size(), 0);
  list<std::int32_t> stack;
  for (const port& p : g.outputs) stack.push_back(p.value);
  for (const parameter& p : g.parameters)
    if (p.updated >= 0) stack.push_back(p.updated);
  const value* const values = g.values.data();
  const node* const nodes = g.nodes.data();
  char* const is_live = live.data();
  while (!stack.empty()) {
    const std::int32_t producer = values[stack.back()].producer;
    stack.pop_back();
    if (producer < 0 || is_live[producer]) continue;
    is_live[producer] = 1;
    const node& n = nodes[producer];
    for (int i = 0; i < n.inputs; ++i)
      if (values[n.in[i]].producer >= 0) stack.push_back(n.in[i]);
    if (is_of_loop(n.kind)) {
      // The control nodes of a loop are live together, as are both carries of a state.
      for (std::size_t k = 0; k < g.nodes.size(); ++k) {
        if (is_live[k] || !is_of_loop(nodes[k].kind) || nodes[k].attr.loop != n.attr.loop) continue;
        const bool ends_state = nesting_of_results(nodes[k]) < 0 && nesting_of_results(n) > 0 && nodes[k].in[0] == n.out[0];
        if (nodes[k].outputs > 0 && !ends_state) continue;
        is_live[k] = 1;
        for (int i = 0; i < nodes[k].inputs; ++i) stack.push_back(nodes[k].in[i]);
      }
    }
  }
  return live;
}

}}}  // namespace gshard::v0::detail
