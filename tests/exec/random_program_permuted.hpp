// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program.hpp"

#include <gshard/pass/cost/step_time.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace random_program {

/// Puts the nodes of a program into another order in which they can run. Nodes of loops stay where they are.
inline void permute_nodes(gs::graph& g, std::mt19937& gen) {
  gs::list<gs::node> permuted;
  std::vector<char> is_made(g.values.size(), 1);
  for (const gs::node& n : g.nodes)
    for (int o = 0; o < n.outputs; ++o) is_made[std::size_t(n.output(o))] = 0;
  const auto add = [&](const gs::node& n) {
    for (int o = 0; o < n.outputs; ++o) {
      is_made[std::size_t(n.output(o))] = 1;
      g.at(n.output(o)).producer = std::int32_t(permuted.size());
    }
    permuted.push_back(n);
  };
  const auto is_ready = [&](std::size_t i) {
    bool ready = true;
    for (int k = 0; k < g.nodes[i].inputs; ++k) ready = ready && is_made[std::size_t(g.nodes[i].input(k))];
    return ready;
  };
  for (std::size_t begin = 0, end = 0; begin < g.nodes.size(); begin = end + 1) {
    std::vector<std::size_t> left;
    for (end = begin; end < g.nodes.size() && !gs::is_of_loop(g.nodes[end].kind); ++end) left.push_back(end);
    while (!left.empty()) {
      std::size_t at = gen() % left.size();
      while (!is_ready(left[at])) at = (at + 1) % left.size();
      add(g.nodes[left[at]]);
      left.erase(left.begin() + std::ptrdiff_t(at));
    }
    if (end < g.nodes.size()) add(g.nodes[end]);
  }
  g.nodes.swap(permuted);
}

/// How the price of a plan depends on the order of independent nodes, or nothing. Collectives are not combined: which ones are depends on
/// what devices compute between them, and few bytes are summed in another way than many.
inline std::string failure_of_order(const recipe& r, std::uint32_t seed) {
  on_mesh::prepared p = on_mesh::prepare(r.on, inputs_of(r), model_of(r));
  p.setting.options.combine_bytes = 0;
  const auto price = [&] {
    const gs::plan_tables t = run_graph::plan(p.program, p.setting);
    const gs::extents e = t.view().bind(r.on.dims, gs::list_view<int>(r.on.mesh.data(), r.on.mesh.size()));
    return "bytes " + std::to_string(t.view().bytes_received(e)) + ", collectives " + std::to_string(t.view().collectives()) + ", flops " +
           std::to_string(gs::flops(t.view(), e));
  };
  try {
    const std::string expected = price();
    std::mt19937 gen(seed);
    permute_nodes(p.program.graph, gen);
    const std::string found = price();
    return found == expected ? "" : found + " instead of " + expected;
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace random_program
