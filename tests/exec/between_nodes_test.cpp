// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The bytes between nodes: those of the plan are those that the backend counts, and the fewest possible.
#include "../comm/random_cases.hpp"
#include "run_graph.hpp"

#include <gshard/exec/executor.hpp>
#include <gshard/pass/cost/node_traffic.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

namespace gs = gshard;

namespace {

/// Nodes of the devices of a mesh of one axis, or of two: then every row has nodes of its own, alike.
std::vector<int> random_nodes(const std::vector<int>& mesh, cases::rng& r) {
  const int rows = mesh.size() == 1 ? 1 : mesh[0], row = mesh.back();
  std::vector<int> in_row, nodes;
  for (int d = 0; d < row; ++d) in_row.push_back(int(cases::below(r, 1 + row / 2)));
  for (int k = 0; k < rows; ++k)
    for (const int n : in_row) nodes.push_back(10 * k + n);
  return nodes;
}

struct counted {
  std::int64_t planned = 0, received = 0;
};
counted run(const gs::plan_tables& plan, const std::vector<int>& mesh, const gs::dims& dims, const gs::node_map& nodes) {
  const gs::any_cluster on(plan.mesh, std::make_shared<gs::simulated>(mesh, nodes));
  gs::executor run(plan.view(), gs::all_kernels, on, dims, gs::parameter_store(on));
  run.run({});
  const std::span<const std::int64_t> bytes = run.between_nodes_in_run();
  return {gs::bytes_between_nodes(plan.view(), plan.view().bind(dims, mesh), nodes.node), std::accumulate(bytes.begin(), bytes.end(), std::int64_t(0))};
}

}  // namespace

TEST_CASE("bytes between nodes: on 1,000 random groupings the plan's are those that are counted") {
  const run_graph::traced t =
      run_graph::trace({{"AB"}}, [](const gs::parameter_scope&, std::span<const gs::symbol> x) { return gs::list<gs::symbol>{run_graph::lay_out(x[0])}; });
  cases::rng r(18);
  std::vector<int> cases_of(std::size_t(gs::op::count_), 0);
  for (int i = 0; i < 1000; ++i) {
    std::vector<int> mesh{2 + int(cases::below(r, 7))};
    if (i % 2 == 0) mesh = {2 + int(cases::below(r, 2)), 2 + int(cases::below(r, 3))};
    const auto from = run_graph::all_layouts(2, int(mesh.size()), true), to = run_graph::all_layouts(2, int(mesh.size()));
    const std::vector<gs::dims> sizes{{{'A', 840}, {'B', 840}}, {{'A', 7}, {'B', 11}}, {{'A', 101}, {'B', 3}}};
    const gs::dims& dims = sizes[std::size_t(cases::below(r, 3))];
    const gs::plan_tables plan = run_graph::plan(
        t, {.mesh = mesh, .dims = dims, .layouts = {from[std::size_t(cases::below(r, int(from.size())))], to[std::size_t(cases::below(r, int(to.size())))]}});
    for (const gs::node& n : plan.steps) ++cases_of[std::size_t(n.kind)];
    const gs::node_map nodes{random_nodes(mesh, r), gs::summation::by_node};
    CAPTURE(i);
    CAPTURE(gs::describe(plan.view()));
    const counted bytes = run(plan, mesh, dims, nodes);
    CHECK(bytes.planned == bytes.received);
  }
  for (const gs::op kind : {gs::op::all_reduce, gs::op::reduce_scatter, gs::op::all_gather, gs::op::all_to_all, gs::op::collective_permute}) CHECK(cases_of[std::size_t(kind)] > 5);
}
