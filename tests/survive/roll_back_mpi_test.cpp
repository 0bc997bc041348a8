// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "roll_back.hpp"

#include "../io/shared_scratch.hpp"
#include "run_stores.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace gs = gshard;
using namespace run_stores;
using roll_back::train, roll_back::bad;

TEST_CASE("roll back, mpi: a fault that does not come again leaves no trace; a bad batch is as if it were absent") {
  const gs::any_cluster on = gs::on_mpi<roll_back::mesh>(MPI_COMM_WORLD);
  const shared_scratch dir;
  const auto undisturbed = train(on, dir / "a"), without = train(on, dir / "b", {.absent = {8}});
  for (const bool per_host : {false, true}) {
    const gs::checkpointer_options saving{.every_steps = 3, .per_host = per_host};
    const std::string own = per_host ? "/disk" + std::to_string(mpi_world::rank()) : "";
    const auto once = train(on, dir / "c" + own, {.is_bad = bad({5, 8}, 2), .saving = saving});
    CHECK(once.back == std::vector<std::uint32_t>{3, 3, 6, 6});
    CHECK(once == undisturbed);
    CHECK(train(on, dir / "d" + own, {.is_bad = bad({8}, 1000), .leaves_out = true, .saving = saving}) == without);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("roll back, mpi: all ranks give up; a rank that goes back alone is told so") {
  const gs::any_cluster on = gs::on_mpi<roll_back::mesh>(MPI_COMM_WORLD);
  const shared_scratch dir;
  const std::string said = complaint([&] { train(on, dir / "a", {.is_bad = bad({10}, 1000)}); });
  CHECK(contains(said, "has gone back to the checkpoint of step 9 3 times"));
  if (mpi_world::ranks() == 1) return;
  gs::parameter_store store = make(on, 1, 7);
  gs::checkpointer checkpoints(store, dir / "b", {.every_steps = 1});
  CHECK(checkpoints.save());
  set_step(store, 8);
  CHECK(contains(complaint([&] {
                   if (mpi_world::rank() == 1) checkpoints.roll_back(std::runtime_error("why"));
                   else checkpoints.after_step();
                 }),
                 "roll_back of a checkpointer"));
  CHECK(is_step(store, 8));
}
