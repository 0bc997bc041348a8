// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace random_program {

/// Puts remat scopes around random sections of a program's forward pass, as if they had been written there.
inline void add_remat_scopes(gs::graph& g, std::mt19937& gen) {
  std::int32_t now = 0;
  for (gs::node& n : g.nodes) {
    if (gen() % 4 == 0) {
      now = 0;
      if (gen() % 4 != 0) {
        using enum gs::remat_policy;
        g.remats.push_back(std::array{nothing, nothing, products, collectives}[gen() % 4]);
        now = std::int32_t(g.remats.size());
      }
    }
    if (!n.place.gradient) n.place.remat = now;
  }
}

/// The difference of results with recomputed activations, or nothing. `repeated`: counts the steps that run again.
inline std::string failure_of_remat(const recipe& r, std::uint32_t seed, std::size_t& repeated) {
  on_mesh::prepared p = on_mesh::prepare(r.on, inputs_of(r), model_of(r));
  std::string said;
  try {
    const run_graph::arrays expected = run_graph::run(p.program, p.setting, p.sources);
    std::mt19937 gen(seed);
    add_remat_scopes(p.program.graph, gen);
    for (const gs::node& step : run_graph::plan(p.program, p.setting).steps) repeated += step.place.recomputed;
    said = on_mesh::difference(run_graph::run(p.program, p.setting, p.sources), expected, std::string(expected.size(), on_mesh::same_bits));
  } catch (const std::exception& e) {
    said = e.what();
  }
  return said;
}

}  // namespace random_program
