// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program.hpp"

#include <gshard/core/cost/step_time.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace random_program {

/// Puts the nodes of a program into another valid order. Nodes of loops stay where they are.
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

/// The same program with its steps in another valid order. Inputs come first. No step moves across a loop.
inline recipe permute_steps(const recipe& r, std::mt19937& gen) {
  recipe permuted = r;
  permuted.steps.clear();
  std::vector<int> now(r.steps.size(), -1);  // the new number of each step
  const auto add = [&](std::size_t i) {
    now[i] = int(permuted.steps.size());
    permuted.steps.push_back(r.steps[i]);
    for (int& k : permuted.steps.back().in) k = now[std::size_t(k)];
  };
  const auto is_ready = [&](std::size_t i) {
    return std::all_of(r.steps[i].in.begin(), r.steps[i].in.end(), [&](int k) { return now[std::size_t(k)] >= 0; });
  };
  for (std::size_t i = 0; i < r.steps.size(); ++i)
    if (r.steps[i].what == verb::input) add(i);
  for (std::size_t begin = 0, end = 0; begin < r.steps.size(); begin = end + 1) {
    std::vector<std::size_t> left;
    for (end = begin; end < r.steps.size() && r.steps[end].what != verb::scan && r.steps[end].what != verb::loop; ++end)
      if (now[end] < 0) left.push_back(end);
    while (!left.empty()) {
      std::size_t at = gen() % left.size();
      while (!is_ready(left[at])) at = (at + 1) % left.size();
      add(left[at]);
      left.erase(left.begin() + std::ptrdiff_t(at));
    }
    if (end < r.steps.size()) add(end);
  }
  for (result& y : permuted.results) y.of = now[std::size_t(y.of)];
  for (result& y : permuted.gradients) y.of = now[std::size_t(y.of)];
  for (int& k : permuted.loss) k = now[std::size_t(k)];
  return permuted;
}

/// The difference between the prices of plans with permuted independent nodes, or nothing. Collectives are not combined, because combining
/// depends on what devices compute between them, and few bytes are summed differently than many.
inline std::string failure_of_order(const recipe& r, std::uint32_t seed) {
  std::mt19937 gen(seed);
  const auto price = [&](const recipe& program, bool permute) {
    on_mesh::prepared p = on_mesh::prepare(program.on, inputs_of(program), model_of(program));
    p.setting.options.combine_bytes = 0;
    if (permute) permute_nodes(p.program.graph, gen);
    const gs::plan_tables t = run_graph::plan(p.program, p.setting);
    const gs::extents e = t.view().bind(r.on.dims, gs::list_view<int>(r.on.mesh.data(), r.on.mesh.size()));
    return "bytes " + std::to_string(t.view().bytes_received(e)) + ", collectives " + std::to_string(t.view().collectives()) + ", flops " +
           std::to_string(gs::flops(t.view(), e));
  };
  try {
    const std::string expected = price(r, false);
    if (const std::string found = price(r, true); found != expected) return "nodes permuted: " + found + " instead of " + expected;
    if (const std::string found = price(permute_steps(r, gen), false); found != expected)
      return "steps permuted: " + found + " instead of " + expected;
    return "";
  } catch (const on_mesh::ill_formed&) {
    throw;
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace random_program
