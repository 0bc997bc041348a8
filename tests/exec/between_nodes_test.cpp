// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The bytes between nodes: those of the plan are those that the backend counts, and the fewest possible.
#include "../comm/random_cases.hpp"
#include "run_graph.hpp"

#include <gshard/exec/executor.hpp>
#include <gshard/grad/differentiate.hpp>
#include <gshard/nn/moe.hpp>
#include <gshard/pass/cost/node_traffic.hpp>

#include <doctest/doctest.h>

#include <array>
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

/// The fewest bytes with which every group can do a move between nodes: what new shards of a node's members have, and no old shard of them.
std::int64_t least_bytes(const gs::plan_view& plan, const gs::node& step, const gs::extents& e, const std::vector<int>& mesh,
                         const std::vector<int>& node) {
  std::int64_t bytes = 0;
  for (int device = 0; device < int(node.size()); ++device) {
    const gs::device_group group(mesh, step.attr.axes, device);
    if (group.member() != 0) continue;
    std::set<int> nodes;
    for (int m = 0; m < group.size(); ++m) nodes.insert(node[std::size_t(group.device(m))]);
    for (const int here : nodes) {
      std::set<std::pair<std::int64_t, std::int64_t>> lacks;  // elements
      const auto visit = [&](const gs::value& v, bool is_new) {
        for (int m = 0; m < group.size(); ++m) {
          if (node[std::size_t(group.device(m))] != here) continue;
          const gs::detail::mesh_place at = gs::detail::place_of(plan, v.layout, group.device(m), e);
          const gs::interval rows = gs::detail::held(v, 0, plan.windows, e, at), columns = gs::detail::held(v, 1, plan.windows, e, at);
          for (std::int64_t a = rows.begin; a < rows.end; ++a)
            for (std::int64_t b = columns.begin; b < columns.end; ++b)
              if (is_new) lacks.insert({a, b});
              else lacks.erase({a, b});
        }
      };
      visit(plan.at(step.output(0)), true);
      visit(plan.at(step.input(0)), false);
      bytes += std::int64_t(lacks.size()) * gs::size_of(plan.at(step.input(0)).type);
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("bytes between nodes: on 1,000 random groupings the plan's are those that are counted, and those of moves the fewest possible") {
  const run_graph::traced t =
      run_graph::trace({{"AB"}}, [](const gs::parameter_scope&, std::span<const gs::symbol> x) { return gs::list<gs::symbol>{run_graph::lay_out(x[0])}; });
  cases::rng r(18);
  std::vector<int> cases_of(std::size_t(gs::op::count_), 0);
  int compared = 0;
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
    const gs::extents e = plan.view().bind(dims, mesh);
    for (const gs::node& n : plan.steps) {
      if (!gs::traits(n.kind).collective || gs::traits(n.kind).sums || dims.find('A') > 200) continue;
      CHECK(gs::bytes_between_nodes(plan.view(), n, e, nodes.node) == least_bytes(plan.view(), n, e, mesh, nodes.node));
      ++compared;
    }
  }
  CHECK(compared > 300);
  for (const gs::op kind : {gs::op::all_reduce, gs::op::reduce_scatter, gs::op::all_gather, gs::op::all_to_all, gs::op::collective_permute}) CHECK(cases_of[std::size_t(kind)] > 5);
}

TEST_CASE("bytes between nodes: of a mixture of experts, in groups and not, on nodes of any number of devices") {
  cases::rng r(4);
  for (const int groups : {1, 2, 3}) {
    const run_graph::traced t = run_graph::trace({{"GSM"}, {"GS"}, {"GSM"}}, [=](const gs::parameter_scope& m, std::span<const gs::symbol> x) {
      const gs::symbol y = gs::nn::moe<"x">(m, x[0], x[1], {.k = 3, .expert_groups = groups}).y;
      return gs::list<gs::symbol>{y, gs::gradients(gs::sum(y * x[2]), std::array{x[0]})[0]};
    });
    const gs::dims dims{{'G', 7}, {'S', 6}, {'M', 5}, {'E', 6}, {'F', 4}};
    for (int i = 0; i < 10; ++i) {
      const std::vector<int> mesh{2 + int(cases::below(r, 5))};
      run_graph::setting s = run_graph::serial(t, dims);
      s.mesh = mesh;
      for (gs::sharding& layout : s.layouts)
        if (layout.rank != 2 || &layout - s.layouts.data() < 3) layout[0].push_back(0);  // all but the gate's weights
      const gs::plan_tables plan = run_graph::plan(t, s);
      CAPTURE(gs::describe(plan.view()));
      const counted bytes = run(plan, mesh, dims, {random_nodes(mesh, r), gs::summation::by_node});
      CHECK(bytes.planned == bytes.received);
    }
  }
}
