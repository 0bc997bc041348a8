// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/collective/async_collectives.hpp>

#include <gshard/cluster/mpi.hpp>
#include <gshard/cluster/mpi_cluster.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/exec/collective/overlap_choice.hpp>
#include <gshard/exec/program/executable.hpp>
#include <gshard/train/adam.hpp>

#include "../../mpi_world.hpp"
#include "../run_graph.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace gs = gshard;
using gs::P, gs::none;

namespace {

struct bound {
  gs::any_cluster on;
  gs::executor run;

  bound(const gs::plan_tables& p, std::shared_ptr<gs::backend> b, const gs::dims& extents)
      : on(p.mesh, std::move(b)), run(p.view(), gs::all_kernels, on, extents, gs::parameter_store(on, 17)) {}
};

inline constexpr auto training_step = [](auto& m, auto x, auto rate) {
  gs::symbol y = x;
  for (int i = 0; i < 20; ++i) y = y + gs::relu(gs::einsum<"BM,MN->BN">(y, m.scope(i).param("w", "MM", gs::init::fan_in("M"))));
  const auto loss = gs::sum(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using line = gs::mesh<gs::axis<"data">>;
using program = gs::program<training_step, line, gs::in<"BM", P<"data", none>>, gs::in<"">>;

}  // namespace

TEST_CASE("mpi: processes with other shards, which run other steps together, start and finish their messages in one order") {
  // Products of blocks whose leading extents are 2 on one device and 1 on another, while moves of many rounds are in flight.
  const auto t = run_graph::trace({{"ABCP"}, {"CABQ"}, {"CPQ"}, {"ABDP"}}, [](const gs::parameter_scope&, std::span<const gs::symbol> x) {
    const gs::symbol s = gs::merge_dims<0>(x[0]), s2 = gs::merge_dims<0>(x[3]), m = gs::merge_dims<1>(x[1]);
    const gs::symbol first = gs::einsum<"ECP,EDP->ECD">(s, s2), second = gs::einsum<"ECP,EDP->EDC">(s, s2);
    return gs::list<gs::symbol>{gs::einsum<"ECP,CPQ->CEQ">(s, x[2]) + m, run_graph::lay_out(first), second};
  });
  const gs::dims dims{{'A', 1}, {'B', 3}, {'C', 2}, {'P', 4}, {'Q', 32768 * 9}, {'D', 65536}};
  run_graph::setting s{.mesh = {mpi_world::ranks()}, .dims = dims, .layouts = {}};
  for (const std::int32_t v : t.free) s.layouts.push_back(gs::sharding::replicated(t.graph.at(v).rank()));
  for (const auto& [tensor, dim] : {std::pair{0, 0}, {1, 1}, {3, 0}, {4, 1}}) s.layouts[std::size_t(tensor)][dim].push_back(0);
  const gs::plan_tables p = run_graph::plan(t, s);
  const run_graph::arrays in = run_graph::random_sources(t, s.dims, 1);
  bound simulated(p, std::make_shared<gs::simulated>(s.mesh), dims);
  bound here(p, std::make_shared<gs::mpi_backend>(MPI_COMM_WORLD, s.mesh), dims);
  const auto me = std::size_t(mpi_world::rank());
  for (bound* b : {&simulated, &here}) {
    for (std::size_t i = 0; i < 4; ++i) run_graph::scatter(b->on, b->run.input(i), in[i]);
    b->run.run({});
  }
  for (std::size_t o = 0; o < 3; ++o) {
    const auto &expected = simulated.run.output(o), &found = here.run.output(o);
    REQUIRE(expected.bytes(me) == found.bytes(0));
    CHECK((found.bytes(0) == 0 || std::memcmp(expected.data[me], found.data[0], std::size_t(found.bytes(0))) == 0));
  }
}

TEST_CASE("mpi: what one process fails with between updates is told to all") {
  if (mpi_world::ranks() == 1) return;
  gs::executable<program> step(gs::on_mpi<line>(MPI_COMM_WORLD), {{'B', 8}, {'M', 64}});
  const std::vector<float> x(8 * 64, 0.5f);
  int updates = 0;
  step.executor().hook = [&](const gs::node& n, bool before) {
    if (before && n.kind == gs::op::adam && ++updates == 3 && mpi_world::rank() == 1) throw gs::error("the third update");
  };
  CHECK_THROWS_AS(step(x, std::vector<float>{0.01f}), gs::error);
}

TEST_CASE("mpi: with, without and with measured overlap, a program has the same bits, and all ranks choose together") {
  const std::vector<float> x(8 * 64, 0.5f), rate{0.001f};
  std::vector<float> expected;
  for (const gs::overlap_mode mode : {gs::overlap_mode::off, gs::overlap_mode::on, gs::overlap_mode::automatic}) {
    gs::executable<program> step(gs::on_mpi<line>(MPI_COMM_WORLD, {}, {.overlap = mode}), {{'B', 8}, {'M', 64}});
    const gs::executor& run = step.executor();
    const bool measures = mode == gs::overlap_mode::automatic && mpi_world::ranks() > 1;
    CHECK(run.measures_overlap() == measures);
    std::vector<float> losses;
    int with = 0, runs = 0;
    for (; runs < 14; ++runs) {
      if (run.measures_overlap()) with += run.overlaps();
      else if (runs > 0 && measures) break;
      losses.push_back(step(x, rate).item());
    }
    CHECK(runs == (measures ? 2 + 2 * int(gs::detail::overlap_choice::samples) : 14));
    CHECK(with == (measures ? 1 + int(gs::detail::overlap_choice::samples) : 0));
    if (!measures) CHECK(run.overlaps() == (mode != gs::overlap_mode::off && mpi_world::ranks() > 1));
    int most = run.overlaps(), least = run.overlaps();
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    CHECK(most == least);
    while (losses.size() < 14) losses.push_back(step(x, rate).item());
    if (mode == gs::overlap_mode::off) expected = losses;
    CHECK(losses == expected);
  }
}

TEST_CASE("mpi: an error in a measured run is told to all, and later runs go on measuring") {
  if (mpi_world::ranks() == 1) return;
  gs::executable<program> step(gs::on_mpi<line>(MPI_COMM_WORLD), {{'B', 8}, {'M', 64}});
  const std::vector<float> x(8 * 64, 0.5f), rate{0.001f};
  step(x, rate);  // the next run does not overlap
  REQUIRE_FALSE(step.executor().overlaps());
  step.executor().hook = [&](const gs::node& n, bool before) {
    if (before && n.kind == gs::op::einsum && mpi_world::rank() == 1) throw gs::error("a product");
  };
  CHECK_THROWS_AS(step(x, rate), gs::error);
  step.executor().hook = {};
  for (int i = 0; i < 20; ++i) step(x, rate);
  CHECK_FALSE(step.executor().measures_overlap());
}
