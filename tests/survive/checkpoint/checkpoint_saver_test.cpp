// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/checkpoint/checkpoint_saver.hpp>

#include "../../io/scratch.hpp"
#include "../run_stores.hpp"

#include <doctest/doctest.h>

#include <string>

namespace gs = gshard;
namespace detail = gs::detail;

TEST_CASE("checkpoint_saver: what is saved is the store at the start, not what it is while it is written") {
  const scratch dir;
  gs::parameter_store store = run_stores::make(stores::simulated({2}), 1, 7);
  {
    const detail::disk_table disks(store.cluster().backend());
    detail::checkpoint_saver saver(store, disks, {dir / "run", false, {}, [](const std::string&) {}});
    gs::manifest m;
    m.step = 7;
    saver.start({7, 0}, m, nullptr, {});
    CHECK(saver.in_flight());
    run_stores::set_step(store, 8);
    const auto result = saver.poll(true);
    REQUIRE(result.has_value());
    CHECK(result->problem == "");
    CHECK_FALSE(saver.in_flight());
    CHECK_FALSE(saver.equals_last());
    run_stores::set_step(store, 7);
    CHECK(saver.equals_last());
    gs::manifest latin1 = m;
    latin1.settings["name"] = "Andr\xe9";
    saver.start({9, 0}, latin1, nullptr, {});
    CHECK(saver.poll(true)->problem.find("is not UTF-8") != std::string::npos);
    CHECK_FALSE(saver.equals_last());  // the copy for the failed save is not saved
    saver.start({10, 0}, m, nullptr, {});  // lost together with the saver
  }
  run_stores::set_step(store, 0);
  gs::checkpointer checkpoints(store, dir / "run");
  CHECK(checkpoints.resume()->step == 7);
  CHECK(run_stores::is_step(store, 7));
}
