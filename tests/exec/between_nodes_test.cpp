// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The bytes between nodes: the plan's equal the backend's counts, and are the fewest possible.
#include "backend/random_cases.hpp"
#include "run_graph.hpp"

#include <gshard/core/cost/node_traffic.hpp>
#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/program/program.hpp>
#include <gshard/core/trace/parameter_scope.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/exec/program/executor.hpp>
#include <gshard/moe/layer/moe.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/reverse.hpp>
#include <gshard/ops/window/roll.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

namespace gs = gshard;

namespace {

/// Random nodes for the devices of a mesh with one or two axes. With two axes, rows share nodes all together, in groups, or not at all.
std::vector<int> random_nodes(const std::vector<int>& mesh, cases::rng& r) {
  const int rows = mesh.size() == 1 ? 1 : mesh[0], row = mesh.back(), together = 1 + int(cases::below(r, 3));
  std::vector<int> in_row, nodes;
  for (int d = 0; d < row; ++d) in_row.push_back(int(cases::below(r, 1 + row / 2)));
  for (int k = 0; k < rows; ++k)
    for (const int n : in_row) nodes.push_back(10 * (k / together) + n);
  return nodes;
}

struct counted {
  std::int64_t planned = 0, received = 0;
  run_graph::arrays results{};
};
counted run(const gs::plan_tables& plan, const std::vector<int>& mesh, const gs::dims& dims, const gs::node_map& nodes,
            const run_graph::arrays& sources = {}) {
  const gs::any_cluster on(plan.mesh, std::make_shared<gs::simulated>(mesh, nodes));
  gs::executor run(plan.view(), gs::all_kernels, on, dims, gs::parameter_store(on));
  for (std::size_t i = 0; i < sources.size(); ++i) run_graph::scatter(on, run.input(i), sources[i]);
  run.run({});
  const std::span<const std::int64_t> bytes = run.between_nodes_in_run();
  counted found{gs::bytes_between_nodes(plan.view(), plan.view().bind(dims, mesh), nodes.node),
                std::accumulate(bytes.begin(), bytes.end(), std::int64_t(0))};
  for (std::size_t i = 0; i < plan.outputs.size() && !sources.empty(); ++i) found.results.push_back(run_graph::collect(on, run.output(i)));
  return found;
}

/// Calls f(index of an element of the whole tensor) for the elements of a shard. Windows may wrap.
template <class F>
void for_each_element(const gs::plan_view& plan, const gs::value& v, const gs::extents& e, int device, F f) {
  const gs::detail::mesh_place at = gs::detail::place_of(plan, v.layout, device, e);
  const auto along = [&](auto&& self, int d, std::int64_t index) -> void {
    if (d == v.rank()) return f(index);
    const std::int64_t extent = e.dim(v.dims[d]);
    const gs::interval has = gs::detail::held(v, d, plan.windows, e, at);
    for (std::int64_t k = has.begin; k < has.end; ++k) self(self, d + 1, index * extent + k % extent);
  };
  along(along, 0, 0);
}

/// The fewest bytes between nodes for a move: elements that new shards on a node need, and no old shard on this node has.
std::int64_t least_bytes(const gs::plan_view& plan, const gs::node& step, const gs::extents& e, const std::vector<int>& node) {
  std::int64_t bytes = 0;
  for (const int here : std::set<int>(node.begin(), node.end()))
    for (int t = 0; t < step.inputs; ++t) {
      std::set<std::int64_t> lacks;
      for (const bool is_new : {true, false})
        for (int device = 0; device < int(node.size()); ++device)
          if (node[std::size_t(device)] == here)
            for_each_element(plan, plan.at(is_new ? step.output(t) : step.input(t)), e, device, [&](std::int64_t k) {
              if (is_new) lacks.insert(k);
              else lacks.erase(k);
            });
      bytes += std::int64_t(lacks.size()) * gs::size_of(plan.at(step.input(t)).type);
    }
  return bytes;
}

/// The bytes between nodes of a large sum if groups of replicas on the same nodes sum once. A node sends a partial sum, and receives the
/// sum.
std::int64_t bytes_of_sum(const gs::plan_view& plan, const gs::node& step, const gs::extents& e, const std::vector<int>& mesh,
                          const std::vector<int>& node) {
  const gs::value &before = plan.at(step.input(0)), &after = plan.at(step.output(0));
  std::set<std::vector<int>> known;
  std::int64_t bytes = 0;
  for (int device = 0; device < int(node.size()); ++device) {
    const gs::device_group group(mesh, step.attr.axes, device);
    if (group.member() != 0) continue;
    std::set<int> nodes;
    std::vector<int> what;  // the nodes of its members, and the part of the tensor that it sums
    std::int64_t elements = 0;
    for (int m = 0; m < group.size(); ++m) {
      nodes.insert(node[std::size_t(group.device(m))]);
      what.push_back(node[std::size_t(group.device(m))]);
      if (m == 0 || !gs::detail::is_all_reduce(step.kind))
        for_each_element(plan, after, e, group.device(m), [&](std::int64_t) { ++elements; });
    }
    const std::uint32_t parts = (before.layout.used() | after.layout.used() | before.layout.partial) & ~step.attr.axes;
    for (std::size_t a = 0; a < mesh.size(); ++a) what.push_back((parts >> a) & 1u ? gs::coordinates_of(mesh, device)[a] : 0);
    if (known.insert(what).second)
      bytes += std::int64_t(nodes.size() - 1) * (gs::detail::is_all_reduce(step.kind) ? 2 : 1) * elements * gs::size_of(before.type);
  }
  return bytes;
}

bool is_plain_move(const gs::plan_view& plan, const gs::node& n) {
  bool sums = gs::traits(n.kind).sums;
  for (int t = 0; t < n.inputs; ++t) sums = sums || plan.at(n.input(t)).layout.partial != 0;
  return gs::traits(n.kind).collective && gs::traits(n.kind).reshards && !sums;
}

}  // namespace

TEST_CASE("bytes between nodes: on 1,000 random groupings the plan's are those that are counted, and the fewest possible") {
  const run_graph::traced t = run_graph::trace(
      {{"AB"}}, [](const gs::parameter_scope&, std::span<const gs::symbol> x) { return gs::list<gs::symbol>{run_graph::lay_out(x[0])}; });
  cases::rng r(18);
  std::vector<int> cases_of(gs::most_operations, 0);
  int compared = 0, sums = 0;
  for (int i = 0; i < 1000; ++i) {
    std::vector<int> mesh{2 + int(cases::below(r, 7))};
    if (i % 2 == 0) mesh = {2 + int(cases::below(r, 2)), 2 + int(cases::below(r, 3))};
    const auto from = run_graph::all_layouts(2, int(mesh.size()), true), to = run_graph::all_layouts(2, int(mesh.size()));
    const std::vector<gs::dims> sizes{{{'A', 840}, {'B', 840}}, {{'A', 7}, {'B', 11}}, {{'A', 101}, {'B', 3}}};
    const gs::dims& dims = sizes[std::size_t(cases::below(r, 3))];
    const gs::plan_tables plan = run_graph::plan(
        t, {.mesh = mesh,
            .dims = dims,
            .layouts = {from[std::size_t(cases::below(r, int(from.size())))], to[std::size_t(cases::below(r, int(to.size())))]}});
    for (const gs::node& n : plan.steps) ++cases_of[std::size_t(n.kind->id)];
    const gs::node_map nodes{random_nodes(mesh, r), gs::summation::by_node};
    CAPTURE(i);
    CAPTURE(gs::describe(plan.view()));
    const counted bytes = run(plan, mesh, dims, nodes);
    CHECK(bytes.planned == bytes.received);
    const gs::extents e = plan.view().bind(dims, mesh);
    for (const gs::node& n : plan.steps) {
      if (gs::traits(n.kind).sums && dims.find('A') > 200) {
        CHECK(gs::bytes_between_nodes(plan.view(), n, e, nodes.node) == bytes_of_sum(plan.view(), n, e, mesh, nodes.node));
        ++sums;
      }
      if (!is_plain_move(plan.view(), n) || dims.find('A') > 200) continue;
      CHECK(gs::bytes_between_nodes(plan.view(), n, e, nodes.node) == least_bytes(plan.view(), n, e, nodes.node));
      ++compared;
    }
  }
  CHECK(compared > 300);
  CHECK(sums > 50);
  constexpr gs::op_ref kinds[]{gs::op::all_reduce, gs::op::reduce_scatter, gs::op::all_gather, gs::op::all_to_all,
                               gs::op::collective_permute};
  for (const gs::op_ref kind : kinds)
    CHECK(cases_of[std::size_t(kind->id)] > 5);
}

TEST_CASE("bytes between nodes: replicas and unequal halos, on 1,000 random groupings of devices, travel once to a node that lacks them") {
  const run_graph::traced t = run_graph::trace({{"AB"}}, [](const gs::parameter_scope&, std::span<const gs::symbol> x) {
    const gs::symbol y = run_graph::lay_out(x[0]);
    return gs::list<gs::symbol>{gs::pad(y, 0, 2, -1), gs::roll(y, 1, 2), run_graph::lay_out(gs::reverse(gs::pad(y, 1, 3, 2), 0))};
  });
  cases::rng r(29);
  const std::vector<std::vector<int>> meshes{{4}, {7}, {2, 2}, {2, 3}, {4, 2}, {2, 2, 2}, {3, 2, 2}};
  std::vector<int> cases_of(gs::most_operations, 0);
  int windows = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::vector<int>& mesh = meshes[std::size_t(cases::below(r, std::int64_t(meshes.size())))];
    const auto layouts = run_graph::all_layouts(2, int(mesh.size()));
    const std::vector<gs::dims> sizes{{{'A', 12}, {'B', 8}}, {{'A', 7}, {'B', 11}}, {{'A', 23}, {'B', 3}}};
    const gs::dims& dims = sizes[std::size_t(cases::below(r, 3))];
    const auto any = [&] { return layouts[std::size_t(cases::below(r, std::int64_t(layouts.size())))]; };
    const run_graph::setting s{.mesh = mesh, .dims = dims, .layouts = {any(), any(), any()}};
    const gs::plan_tables plan = run_graph::plan(t, s);
    gs::node_map nodes{{}, gs::summation::by_member};
    const std::int64_t count = 2 + cases::below(r, 3);
    for (int d = 0; d < gs::device_count(mesh); ++d) nodes.node.push_back(int(cases::below(r, count)));
    CAPTURE(i);
    CAPTURE(gs::describe(plan.view()));
    const gs::extents e = plan.view().bind(dims, mesh);
    std::int64_t least = 0;
    for (const gs::node& n : plan.steps) {
      if (!gs::traits(n.kind).collective) continue;
      REQUIRE(is_plain_move(plan.view(), n));
      const std::int64_t bytes = gs::bytes_between_nodes(plan.view(), n, e, nodes.node);
      CHECK(bytes == least_bytes(plan.view(), n, e, nodes.node));
      least += bytes;
      ++cases_of[std::size_t(n.kind->id)];
      for (int o = 0; o < n.outputs; ++o) windows += !plan.view().at(n.output(o)).windows.empty();
    }
    const run_graph::arrays sources = run_graph::random_sources(t, dims, std::uint32_t(i));
    const counted in_levels = run(plan, mesh, dims, nodes, sources);
    CHECK(in_levels.received == least);
    CHECK(in_levels.results == run_graph::serially(t, dims, sources));
  }
  CHECK(windows > 300);
  for (const gs::op_ref kind : std::initializer_list<gs::op_ref>{gs::op::all_gather, gs::op::all_to_all, gs::op::collective_permute})
    CHECK(cases_of[std::size_t(kind->id)] > 50);
}

TEST_CASE("bytes between nodes: of a mixture of experts, in groups and not, on nodes of any number of devices") {
  cases::rng r(4);
  for (const int groups : {1, 2, 3}) {
    const run_graph::traced t =
        run_graph::trace({{"GSM"}, {"GS"}, {"GSM"}}, [=](const gs::parameter_scope& m, std::span<const gs::symbol> x) {
          const gs::symbol y = gs::nn::moe<"x">(m, x[0], x[1], {.routing = {.k = 3}, .experts = gs::experts::in_groups(groups)}).y;
          return gs::list<gs::symbol>{y, gs::gradients(gs::sum(y * x[2]), std::array{x[0]})[0]};
        });
    const gs::dims dims{{'G', 7}, {'S', 6}, {'M', 5}, {'E', 6}, {'F', 4}};
    for (int i = 0; i < 10; ++i) {
      const std::vector<int> mesh{2 + int(cases::below(r, 5))};
      run_graph::setting s = run_graph::serial(t, dims);
      s.mesh = mesh;
      for (gs::sharding& layout : s.layouts)
        if (layout.rank != 2 || &layout - s.layouts.data() < 3) layout[0].push_back(0);  // all except the gate's weights
      const gs::plan_tables plan = run_graph::plan(t, s);
      CAPTURE(gs::describe(plan.view()));
      const counted bytes = run(plan, mesh, dims, {random_nodes(mesh, r), gs::summation::by_node});
      CHECK(bytes.planned == bytes.received);
    }
  }
}

namespace {

using data_and_model = gs::mesh<gs::axis<"data">, gs::axis<"model">>;
inline constexpr auto gathered_parameter = [](auto& m) {
  return gs::annotate<gs::P<gs::none, gs::none>>(m.param("w", "AB", gs::P<"data", gs::none>{}, gs::init::zeros()));
};

}  // namespace

TEST_CASE("bytes between nodes: of a parameter that 1,024 devices gather, with replicas within nodes of 8") {
  constexpr gs::plan_view plan = gs::program<gathered_parameter, data_and_model>::plan;
  const std::vector<int> extents{128, 8};
  std::vector<int> node(1024);
  for (std::size_t d = 0; d < node.size(); ++d) node[d] = int(d / 8);
  CHECK(gs::bytes_between_nodes(plan, plan.bind(gs::dims{{'A', 4096}, {'B', 16}}, extents), node) == 4096 * 16 * 4 * 127);
}
