// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/run/run_clock.hpp>

#include <gshard/cluster/mpi_cluster.hpp>
#include <gshard/exec/program/executable.hpp>
#include <gshard/moe/layer/moe.hpp>
#include <gshard/train/adam.hpp>

#include "../../complaint.hpp"
#include "../../mpi_world.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mpi_world::rank, mpi_world::ranks;

namespace {

using mesh = gs::mesh<gs::axis<"expert">>;
inline constexpr auto learn = [](auto& m, auto x, auto mask, auto rate) {
  const auto layer = gs::nn::moe<"expert">(m.scope("moe"), x, mask, {.routing = {.k = 2, .slots = gs::capacity{2}}});
  const auto loss = gs::mean(layer.y * layer.y);
  gs::adam{}.minimize(m, loss + 0.01 * m.auxiliary(), rate);
  return loss;
};
using training = gs::program<learn, mesh, in<"GSM", P<"expert", none, none>>, in<"GS", P<"expert", none>>, in<"">>;
const gs::dims sizes{{'G', 12}, {'S', 8}, {'M', 16}, {'E', 12}, {'F', 16}};

float step(gs::executable<training>& run) {
  std::vector<float> x(12 * 8 * 16);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(int(i * 37 % 101) - 50) / 64;
  return run(x, std::vector<float>(12 * 8, 1.0f), std::vector<float>{1e-2f}).item();
}
gs::hardware devices() { return gs::parse_hardware("aries:" + std::to_string(ranks())); }

}  // namespace

TEST_CASE("mpi: every process has the clocks of a simulated run, and receives what its device received there") {
  const auto here = gs::on_mpi<mesh>(MPI_COMM_WORLD), there = gs::simulate<mesh>(ranks());
  gs::executable<training> run(here, sizes, gs::parameter_store(here, 5)), simulated(there, sizes, gs::parameter_store(there, 5));
  gs::dry_run_options o;
  o.faults.stragglers = {{ranks() - 1, 2.0}};
  const gs::run_clock clock(run.executor(), devices(), o), of_simulated(simulated.executor(), devices(), o);
  for (int k = 0; k < 3; ++k) {
    CHECK(step(run) == step(simulated));
    const gs::run_record r = clock.record(), s = of_simulated.record();
    CHECK(r.seconds == s.seconds);
    CHECK(r.received == std::vector<std::int64_t>{s.received[std::size_t(rank())]});
    CHECK(r.received[0] == training::plan.bytes_received(run.executor().sizes()));
  }
  CHECK(clock.seconds() == of_simulated.seconds());
}

TEST_CASE("mpi: a dead device ends the run on every process, with the names of those who wait") {
  if (ranks() == 1) return;
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  gs::executable<training> run(on, sizes);
  gs::dry_run_options o;
  o.faults.dead_devices = {ranks() - 1};
  {
    const gs::run_clock clock(run.executor(), devices(), o);
    const std::string said = complaint([&] { step(run); });
    CAPTURE(said);
    CHECK(contains(said, " waited 60 s for device " + std::to_string(ranks() - 1) + ", which is dead"));
  }
  CHECK(step(run) > 0);
}
