// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compares pipelines and their gradients with the same layers one after the other: in every sharding, with remat, with any number of
// rounds.
#include <gshard/models/pipeline.hpp>

#include "../exec/run_graph.hpp"

#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/trace/broadcast.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <limits>
#include <span>

namespace gs = gshard;
using gs::symbol;

namespace {

struct pipeline_case {
  int stages, microbatches, rounds;
  gs::remat_policy saved = gs::remat_policy::everything;
  gs::nn::pipeline_plan plan = gs::nn::pipeline_plan::loop;
};
gs::dims sizes_of(const pipeline_case& c) { return {{'S', c.stages}, {'M', c.microbatches}, {'R', c.rounds}, {'B', 3}, {'F', 2}}; }

symbol stage(symbol y, symbol w, symbol v) {
  return y + gs::broadcast<"SF,SBF->SBF">(v, y) * gs::map<[](auto u) { return gs::tanh(u); }>(gs::einsum<"SBF,SFG->SBG">(y, w));
}

/// y and the gradients of <y, dy>, by a pipeline or by layers one after the other.
run_graph::traced traced(const pipeline_case& c, bool pipelined) {
  const bool circular = c.rounds > 1;
  return run_graph::trace(
      {{"MBF"}, {circular ? "RSFF" : "SFF"}, {circular ? "RSF" : "SF"}, {"MBF"}},
      [&](const gs::parameter_scope& m, std::span<const symbol> x) {
        symbol y = x[0];
        if (pipelined) y = gs::nn::pipeline(m, {c.rounds, c.saved, c.plan}, stage, y, x[1], x[2]);
        for (int l = 0; !pipelined && l < c.rounds * c.stages; ++l) {
          const auto of_layer = [&](symbol all) {
            if (circular) all = gs::squeeze(gs::slice(all, 0, l / c.stages, l / c.stages + 1), 0);
            return gs::squeeze(gs::slice(all, 0, l % c.stages, l % c.stages + 1), 0);
          };
          const symbol w = of_layer(x[1]), v = of_layer(x[2]);
          y = y + gs::broadcast<"F,MBF->MBF">(v, y) * gs::map<[](auto u) { return gs::tanh(u); }>(gs::einsum<"MBF,FG->MBG">(y, w));
        }
        gs::list<symbol> results{y};
        for (const symbol& g : gs::gradients(gs::sum(y * x[3]), x.first(3))) results.push_back(g);
        return results;
      },
      {.known = sizes_of(c)});
}

using gs::remat_policy;
constexpr std::array cases{pipeline_case{4, 6, 1},
                           pipeline_case{3, 2, 1},
                           pipeline_case{1, 3, 1},
                           pipeline_case{3, 5, 2},
                           pipeline_case{3, 3, 2},
                           pipeline_case{2, 4, 3, remat_policy::nothing},
                           pipeline_case{4, 6, 1, remat_policy::everything, gs::nn::pipeline_plan::all_ticks},
                           pipeline_case{3, 5, 2, remat_policy::everything, gs::nn::pipeline_plan::all_ticks},
                           pipeline_case{3, 3, 2, remat_policy::nothing, gs::nn::pipeline_plan::all_ticks},
                           pipeline_case{1, 4, 2}};

}  // namespace

TEST_CASE("pipeline: results and gradients are those of layers one after the other") {
  for (const pipeline_case& c : cases) {
    CAPTURE(c.stages);
    CAPTURE(c.microbatches);
    CAPTURE(c.rounds);
    const run_graph::traced a = traced(c, true), b = traced(c, false);
    const run_graph::arrays sources = run_graph::random_sources(a, sizes_of(c), 3);
    CHECK(run_graph::distance(run_graph::run(a, run_graph::serial(a, sizes_of(c)), sources),
                              run_graph::run(b, run_graph::serial(b, sizes_of(c)), sources)) < 1e-13);
  }
}

TEST_CASE("pipeline: every sharding agrees with one device") {
  for (const std::size_t i : {0u, 3u, 5u, 6u, 7u}) {
    CAPTURE(i);
    run_graph::every_sharding(traced(cases[i], true), {.dims = {sizes_of(cases[i])}, .tolerance = 1e-12, .most = 40});
  }
}

TEST_CASE("pipeline: what is not finite in one microbatch stays there") {
  for (const std::size_t i : {3u, 7u}) {
    const pipeline_case c = cases[i];
    const run_graph::traced t = traced(c, true);
    run_graph::arrays sources = run_graph::random_sources(t, sizes_of(c), 3);
    const run_graph::arrays clean = run_graph::run(t, run_graph::serial(t, sizes_of(c)), sources);
    sources[0][0] = std::numeric_limits<double>::quiet_NaN();
    const run_graph::arrays found = run_graph::run(t, run_graph::serial(t, sizes_of(c)), sources);
    for (std::size_t e = 6; e < found[0].size(); ++e) CHECK(found[0][e] == clean[0][e]);
  }
}
