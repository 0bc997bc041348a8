// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Replicas and unequal halos of MPI ranks that are assigned to several nodes: the same results and bytes between nodes as on simulated
// devices.
#include "backend/random_cases.hpp"
#include "../mpi_world.hpp"
#include "run_graph.hpp"

#include <gshard/cluster/mpi.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/exec/backend/simulated.hpp>
#include <gshard/exec/program/executor.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/reverse.hpp>
#include <gshard/ops/window/roll.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace gs = gshard;
using mpi_world::ranks;

namespace {

struct moved {
  std::vector<std::string> bytes;  // outputs on one device
  std::int64_t between = 0;
};
moved run(const gs::plan_tables& plan, const std::shared_ptr<gs::backend>& b, const gs::dims& dims, const run_graph::arrays& sources,
          int device) {
  const gs::any_cluster on(plan.mesh, b);
  gs::executor run(plan.view(), gs::all_kernels, on, dims, gs::parameter_store(on));
  for (std::size_t i = 0; i < sources.size(); ++i) run_graph::scatter(on, run.input(i), sources[i]);
  run.run({});
  const auto at = std::size_t(std::ranges::find(on.devices(), device) - on.devices().begin());
  moved found{{}, run.between_nodes_in_run()[at]};
  for (std::size_t i = 0; i < plan.outputs.size(); ++i)
    found.bytes.emplace_back(reinterpret_cast<const char*>(run.output(i).data[at]), std::size_t(run.output(i).bytes(at)));
  return found;
}

}  // namespace

TEST_CASE("bytes between nodes, mpi: replicas and unequal halos travel as between simulated devices") {
  const run_graph::traced t = run_graph::trace({{"AB"}}, [](const gs::parameter_scope&, std::span<const gs::symbol> x) {
    const gs::symbol y = run_graph::lay_out(x[0]);
    return gs::list<gs::symbol>{gs::pad(y, 0, 2, -1), gs::roll(y, 1, 2), run_graph::lay_out(gs::reverse(gs::pad(y, 1, 3, 2), 0))};
  });
  cases::rng r(3);
  std::vector<std::vector<int>> meshes{{ranks()}};
  for (int n = 2; n < ranks(); ++n)
    if (ranks() % n == 0) meshes.push_back({n, ranks() / n});
  for (const std::vector<int>& mesh : meshes)
    for (const int node_size : {2, 3})
      for (const bool reversed : {false, true}) {
        if (reversed && mesh.size() == 1) continue;
        gs::mpi_options options{.node_size = node_size};
        if (reversed) options.axis_order = {1, 0};
        const auto real = std::make_shared<gs::mpi_backend>(MPI_COMM_WORLD, mesh, options);
        const auto alike = std::make_shared<gs::simulated>(mesh, real->nodes());
        const auto layouts = run_graph::all_layouts(2, int(mesh.size()));
        const auto any = [&] { return layouts[std::size_t(cases::below(r, std::int64_t(layouts.size())))]; };
        for (int i = 0; i < 40; ++i) {
          const gs::dims dims = i % 4 == 0 ? gs::dims{{'A', 203}, {'B', 501}} : gs::dims{{'A', 7}, {'B', 11}};
          const run_graph::setting s{.mesh = mesh, .dims = dims, .layouts = {any(), any(), any()}};
          CAPTURE(run_graph::text_of(s));
          CAPTURE(node_size);
          CAPTURE(reversed);
          const gs::plan_tables plan = run_graph::plan(t, s);
          const run_graph::arrays sources = run_graph::random_sources(t, dims, 1);
          const int device = real->devices()[0];
          const moved here = run(plan, real, dims, sources, device), there = run(plan, alike, dims, sources, device);
          CHECK((here.bytes == there.bytes));
          CHECK(here.between == there.between);
        }
      }
}
