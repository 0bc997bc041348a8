// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/program/executor.hpp>

#include <gshard/cluster/mpi_cluster.hpp>

#include "../allocations.hpp"
#include "../mpi_world.hpp"
#include "training_step.hpp"

#include <doctest/doctest.h>

#include <cstdint>

namespace gs = gshard;

TEST_CASE("mpi: a training step allocates nothing once one has run") {
  const auto on = gs::on_mpi<small_step::mesh>(MPI_COMM_WORLD);
  gs::executable<small_step::program> step(on, small_step::sizes);
  for (std::uint32_t i = 0; i < 4; ++i) {
    small_step::write_inputs(step.executor());
    const std::int64_t made = small_step::allocations_of_run(step.executor(), {step.seed, i});
    CAPTURE(i);
    if (i > 0) CHECK(made == 0);
  }
}
