// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Einsums whose operands or sums are sent block by block, on every mesh and in every layout: the results of one device, and the planned
// bytes.
#include <gshard/all_operations.hpp>
#include <gshard/exec/bind/looped_step.hpp>

#include "../backend/failing_exchanges.hpp"
#include "../run_graph.hpp"

#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/wire.hpp>

namespace gs = gshard;
namespace op = gs::op;
using gs::einsum, gs::symbol;
using run_graph::lay_out, run_graph::trace;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using scope = gs::parameter_scope;

namespace {

const std::vector<gs::dims> sizes{{{'A', 12}, {'B', 24}, {'C', 12}, {'D', 6}},
                                  {{'A', 5}, {'B', 7}, {'C', 3}, {'D', 4}},
                                  {{'A', 2}, {'B', 1}, {'C', 4}, {'D', 1}},
                                  {{'A', 0}, {'B', 5}, {'C', 9}, {'D', 2}},
                                  {{'A', 3}, {'B', 0}, {'C', 2}, {'D', 5}}};

const gs::compile_options always{.known = {}, .uneven = true, .loop_bytes = 0};

void every_sharding(const run_graph::traced& t, bool pending = false) {
  run_graph::every_sharding(t, {.dims = sizes, .pending_sources = pending, .most = 600, .options = always});
}

}  // namespace

TEST_CASE("looped einsum: contracted, free and batch indices, in every layout of operands and result") {
  every_sharding(trace({{"AB"}, {"BC"}}, [](const scope&, given x) { return symbols{lay_out(einsum<"AB,BC->AC">(x[0], x[1]))}; }));
  every_sharding(trace({{"ABC"}, {"ACD"}}, [](const scope&, given x) { return symbols{lay_out(einsum<"abc,acd->bda">(x[0], x[1]))}; }));
  every_sharding(trace({{"ABD"}, {"DBC"}}, [](const scope&, given x) { return symbols{lay_out(einsum<"abd,dbc->cab">(x[0], x[1]))}; }));
  every_sharding(trace({{"AB"}, {"CD"}}, [](const scope&, given x) { return symbols{lay_out(einsum<"ab,cd->cb">(x[0], x[1]))}; }));
  every_sharding(trace({{"AB"}, {"AB"}}, [](const scope&, given x) { return symbols{einsum<"ab,ab->">(x[0], x[1])}; }));
  every_sharding(trace({{"AAB"}, {"BC"}}, [](const scope&, given x) { return symbols{einsum<"aab,bc->ac">(x[0], x[1])}; }));
  every_sharding(trace({{"AA"}}, [](const scope&, given x) { return symbols{einsum<"ab,bc->ac">(x[0], x[0])}; }));
}

TEST_CASE("looped einsum: of partial sums, and of what others read") {
  every_sharding(trace({{"AB"}, {"BC"}}, [](const scope&, given x) { return symbols{lay_out(einsum<"ab,bc->ac">(x[0], x[1]))}; }), true);
  every_sharding(trace({{"AB"}, {"BC"}, {"CD"}}, [](const scope&, given x) {
    const symbol y = einsum<"ab,bc->ac">(x[0], x[1]), z = lay_out(gs::relu(y));
    return symbols{einsum<"ac,cd->ad">(z, x[2]), 2.0 * y - z, lay_out(einsum<"ab,ac->bc">(x[0], y))};
  }));
}

TEST_CASE("looped einsum: operands and sums in bf16 differ by few roundings, in every layout, and half of the bytes travel") {
  const auto program = [](bool rounds) {
    return trace({{"AB"}, {"BC"}}, [=](const scope&, given x) {
      const auto sent = [=](symbol y) { return rounds ? gs::on_wire<gs::bfloat16>(y) : y; };
      return symbols{lay_out(sent(einsum<"ab,bc->ac">(sent(x[0]), sent(x[1]))))};
    });
  };
  const run_graph::traced full = program(false), half = program(true);
  run_graph::every_sharding(half, {.dims = sizes, .tolerance = 0.05, .most = 300, .options = always});
  int loops = 0;
  for (const std::vector<int>& mesh : run_graph::meshes)
    for (const gs::sharding& x : run_graph::all_layouts(2, int(mesh.size())))
      for (const gs::sharding& y : run_graph::all_layouts(2, int(mesh.size()))) {
        const gs::dims dims{{'A', 36}, {'B', 72}, {'C', 144}};
        run_graph::setting s{.mesh = mesh, .dims = dims, .layouts = {x, y, x}, .options = always};
        s.options.known = dims;
        const gs::plan_tables plan = run_graph::plan(half, s), whole = run_graph::plan(full, s);
        const int in_plan = plan.view().count(op::looped_einsum);
        if (in_plan == 0 || in_plan != whole.view().count(op::looped_einsum)) continue;
        CAPTURE(gs::describe(plan.view()));
        const auto bytes = [&](const gs::plan_tables& p) { return p.view().bytes_received(op::looped_einsum, p.view().bind(dims, mesh)); };
        CHECK(bytes(whole) == 4 * bytes(plan));  // of doubles
        const auto backend = std::make_shared<gs::simulated>(mesh);
        const gs::any_cluster on(plan.mesh, backend);
        gs::executor run(plan.view(), gs::all_kernels, on, dims, gs::parameter_store(on));
        run.run({});
        CHECK(run.received(op::looped_einsum).bytes == bytes(plan));
        ++loops;
      }
  CHECK(loops > 20);
}

// Extents are multiples of all axes, so nothing is rounded.
TEST_CASE("looped einsum: devices receive the bytes that the plan says, which are those of the plan without") {
  const run_graph::traced t =
      trace({{"AB"}, {"BC"}}, [](const scope&, given x) { return symbols{lay_out(einsum<"ab,bc->ac">(x[0], x[1]))}; });
  int operands = 0, sums = 0, several_axes = 0;
  for (const std::vector<int>& mesh : run_graph::meshes) {
    const int axes = int(mesh.size());
    const gs::dims dims{{'A', 36}, {'B', 72}, {'C', 144}};
    for (const gs::sharding& x : run_graph::all_layouts(2, axes))
      for (const gs::sharding& w : run_graph::all_layouts(2, axes))
        for (const gs::sharding& y : run_graph::all_layouts(2, axes)) {
          run_graph::setting s{.mesh = mesh, .dims = dims, .layouts = {x, w, y}, .options = always};
          s.options.known = dims;
          const gs::plan_tables p = run_graph::plan(t, s);
          if (p.view().count(op::looped_einsum) == 0) continue;
          for (const gs::node& n : p.steps)
            if (n.kind == op::looped_einsum) {
              ++(gs::ring_carries_sum(n) ? sums : operands);
              several_axes += n.attr.axes == 3;
            }
          const gs::any_cluster on(run_graph::mesh_of_rank(mesh.size()), std::make_shared<gs::simulated>(mesh));
          gs::executor run(p.view(), gs::all_kernels, on, dims, gs::parameter_store(on));
          s.options.loop_bytes = gs::compile_options{}.loop_bytes;
          const gs::plan_tables other = run_graph::plan(t, s);
          bool same = other.view().bytes_received(run.sizes()) == p.view().bytes_received(run.sizes());
          for (int calls = 1; calls <= 2; ++calls) {
            run.run({});
            for (const gs::op_ref kind : gs::all_operations)
              same = same && run.received(kind).calls == calls * (kind->collective ? p.view().count(kind) : 0) &&
                     run.received(kind).bytes == calls * p.view().bytes_received(kind, run.sizes());
          }
          if (!same) FAIL_CHECK(run_graph::text_of(s));
        }
  }
  CHECK(operands > 0);
  CHECK(sums > 0);
  CHECK(several_axes > 0);
}

namespace {
const gs::dims ring_dims{{'A', 10}, {'B', 15}, {'C', 5}};

/// A product whose operand, or whose partial sums, are sent around five devices.
gs::plan_tables ring_of_five(bool sums) {
  const run_graph::traced t =
      trace({{"AB"}, {"BC"}}, [](const scope&, given x) { return symbols{lay_out(einsum<"ab,bc->ac">(x[0], x[1]))}; });
  gs::sharding rows = gs::sharding::replicated(2), columns = rows;
  rows[0].push_back(0);
  columns[1].push_back(0);
  run_graph::setting s{.mesh = {5}, .dims = ring_dims, .layouts = {sums ? columns : rows, rows, rows}, .options = always};
  s.options.known = ring_dims;
  const gs::plan_tables p = run_graph::plan(t, s);
  REQUIRE(p.view().count(op::looped_einsum) == 1);
  REQUIRE(gs::ring_carries_sum(p.steps[0]) == sums);
  return p;
}
}  // namespace

TEST_CASE("looped einsum: blocks travel on when one fails, as other processes wait for them") {
  for (const bool sums : {false, true}) {
    const gs::plan_tables p = ring_of_five(sums);
    const auto backend = std::make_shared<failing_exchanges>(std::vector{5});
    backend->fails = "--x";
    const gs::any_cluster on(run_graph::mesh_of_rank(1), backend);
    gs::executor run(p.view(), gs::all_kernels, on, ring_dims, gs::parameter_store(on));
    CHECK_THROWS_WITH_AS(run.run({}), "exchange 2 failed", gs::error);
    CHECK(backend->finished == 4);
    run.run({});
    CHECK(backend->finished == 8);
    CHECK(backend->started == 8);
  }
}

TEST_CASE("looped einsum: the next block is in flight while a product is computed") {
  for (const bool sums : {false, true}) {
    const gs::plan_tables p = ring_of_five(sums);
    const auto backend = std::make_shared<failing_exchanges>(std::vector{5});
    const gs::any_cluster on(run_graph::mesh_of_rank(1), backend);
    gs::executor run(p.view(), gs::all_kernels, on, ring_dims, gs::parameter_store(on));
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t d = 0; d < 5; ++d) std::fill_n(run.input(i).as<double>(d), run.input(i).elements(d), 1.0);
    double* const y = run.output(0).as<double>(0);
    *y = 0;
    std::vector<double> at_starts, at_ends;  // the sum over the multiplied blocks of three rows
    backend->watch = [&](bool starts) { (starts ? at_starts : at_ends).push_back(*y); };
    run.run({});
    CHECK(*y == 15);
    const std::vector<double> before = sums ? std::vector<double>{0, 0, 0, 0} : std::vector<double>{0, 3, 6, 9};
    const std::vector<double> after = sums ? std::vector<double>{0, 0, 0, 3} : std::vector<double>{3, 6, 9, 12};
    CHECK(at_starts == before);
    CHECK(at_ends == after);
  }
}
