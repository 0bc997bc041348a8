// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors that are sent in bf16: every sharding, the error bound, and half of the bytes.
#include "backend/random_cases.hpp"
#include "run_graph.hpp"

#include <gshard/core/cost/node_traffic.hpp>
#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/core/trace/wire.hpp>
#include <gshard/exec/program/executor.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/reverse.hpp>
#include <gshard/ops/window/roll.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace gs = gshard;
using gs::dtype, gs::einsum, gs::symbol;
using run_graph::every_sharding, run_graph::lay_out, run_graph::trace;

namespace {

using wire_symbols = gs::list<symbol>;
using wire_inputs = std::span<const symbol>;
const std::vector<gs::dims> wire_sizes{{{'A', 6}, {'B', 8}, {'C', 6}}, {{'A', 5}, {'B', 7}, {'C', 3}}, {{'A', 2}, {'B', 1}, {'C', 4}}};

symbol rounded(symbol x) { return gs::on_wire<gs::bfloat16>(x); }

}  // namespace

TEST_CASE("on_wire: numbers that bf16 holds arrive unchanged, in any sharding, through windows and as partial sums") {
  every_sharding(trace({{"AB"}}, [](const gs::parameter_scope&, wire_inputs x) { return wire_symbols{lay_out(rounded(x[0])), x[0]}; }),
                 {.dims = wire_sizes, .pending_sources = true});
  every_sharding(trace({{"AB"}},
                       [](const gs::parameter_scope&, wire_inputs x) {
                         const symbol y = rounded(x[0]);
                         return wire_symbols{gs::roll(y, 0, 1), gs::pad(y, 1, 2, -1), lay_out(gs::reverse(y, 0)), gs::merge_dims(y, 0)};
                       }),
                 {.dims = wire_sizes});
}

TEST_CASE("on_wire: products and their gradients differ by few roundings, in any sharding") {
  every_sharding(trace({{"AB"}, {"BC"}},
                       [](const gs::parameter_scope&, wire_inputs x) {
                         const symbol y = rounded(einsum<"AB,BC->AC">(rounded(x[0]), x[1]));
                         const symbol loss = gs::sum(y * y);
                         const auto d = gs::gradients(loss, std::array{x[0], x[1]});
                         return wire_symbols{lay_out(y), d[0], rounded(d[1])};
                       }),
                 {.dims = wire_sizes, .tolerance = 0.05, .most = 200});
}

TEST_CASE("on_wire: NaN and infinities arrive") {
  every_sharding(trace({{"AB"}},
                       [](const gs::parameter_scope&, wire_inputs x) {
                         return wire_symbols{lay_out(rounded(x[0])), einsum<"AB->B">(rounded(lay_out(x[0])))};
                       }),
                 {.dims = wire_sizes, .most = 60, .prepare = [](run_graph::arrays& x) {
                    x[0][0] = std::numeric_limits<double>::quiet_NaN();
                    x[0].back() = std::numeric_limits<double>::infinity();
                  }});
}

namespace {

struct traffic_of_run {
  std::int64_t planned = 0, received = 0, planned_between = 0, received_between = 0;
};
traffic_of_run traffic_of(const run_graph::traced& t, const run_graph::setting& s, const gs::node_map& nodes) {
  const gs::plan_tables plan = run_graph::plan(t, s);
  const auto backend = std::make_shared<gs::simulated>(s.mesh, nodes);
  const gs::any_cluster on(plan.mesh, backend);
  gs::executor run(plan.view(), gs::all_kernels, on, s.dims, gs::parameter_store(on));
  backend->reset_received();
  run.run({});
  const gs::extents e = plan.view().bind(s.dims, s.mesh);
  traffic_of_run found{plan.view().bytes_received(e), 0, gs::bytes_between_nodes(plan.view(), e, nodes.node), 0};
  for (const gs::traffic& each : backend->received()) found.received = std::max(found.received, each.exchange_bytes + each.gather_bytes);
  for (const std::int64_t bytes : run.between_nodes_in_run()) found.received_between += bytes;
  return found;
}

template <bool Rounds>
run_graph::traced moved_f32() {
  return trace({{"AB", dtype::f32}}, [](const gs::parameter_scope&, wire_inputs x) {
    return wire_symbols{lay_out(Rounds ? rounded(x[0]) : x[0])};
  });
}

}  // namespace

TEST_CASE("on_wire: half of the bytes in plans and counted in runs, in all and between nodes, on 300 random groupings") {
  const run_graph::traced full = moved_f32<false>(), half = moved_f32<true>();
  cases::rng r(5);
  int compared = 0;
  for (int i = 0; i < 300; ++i) {
    std::vector<int> mesh{2 + int(cases::below(r, 5))};
    if (i % 2 == 0) mesh = {2, 2 + int(cases::below(r, 2))};
    const auto from = run_graph::all_layouts(2, int(mesh.size()), true), to = run_graph::all_layouts(2, int(mesh.size()));
    const std::vector<gs::dims> sizes{{{'A', 840}, {'B', 840}}, {{'A', 103}, {'B', 89}}};
    gs::node_map nodes{{}, gs::summation::by_node};
    for (int d = 0; d < gs::device_count(mesh); ++d) nodes.node.push_back(int(cases::below(r, 3)));
    const run_graph::setting s{
        .mesh = mesh,
        .dims = sizes[std::size_t(cases::below(r, 2))],
        .layouts = {from[std::size_t(cases::below(r, int(from.size())))], to[std::size_t(cases::below(r, int(to.size())))]}};
    CAPTURE(i);
    CAPTURE(run_graph::text_of(s));
    const traffic_of_run f = traffic_of(full, s, nodes), h = traffic_of(half, s, nodes);
    CHECK(std::abs(f.planned - 2 * h.planned) <= 2);  // for uneven shards, the plan has the rounded mean of the bytes
    CHECK(f.received == 2 * h.received);
    CHECK(f.planned_between == 2 * h.planned_between);
    CHECK(f.received_between == 2 * h.received_between);
    if (mesh.size() == 1) CHECK(h.planned_between == h.received_between);  // the plan does not know that groups are on different nodes
    compared += f.received_between > 0;
  }
  CHECK(compared > 150);
}
