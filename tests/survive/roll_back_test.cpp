// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A run with a non-finite number rolls back to its last checkpoint, and ends with the same result as a run without one.
#include "roll_back.hpp"

#include "../io/scratch.hpp"
#include "run_stores.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace gs = gshard;
namespace fs = std::filesystem;
using namespace run_stores;
using roll_back::train, roll_back::bad;

TEST_CASE("roll back: a fault that does not come again leaves no trace; a bad batch is as if it were absent; on every mesh") {
  for (const auto& [data, model] : {std::pair{1, 1}, {2, 1}, {1, 3}, {3, 2}})
    for (const int batch : {4, 9, 19}) {
      CAPTURE(data);
      CAPTURE(model);
      CAPTURE(batch);
      const gs::any_cluster on = gs::simulate<roll_back::mesh>(std::vector{data, model});
      const scratch dir;
      const auto undisturbed = train(on, dir / "a"), without = train(on, dir / "b", {.absent = {batch}});
      const auto once = train(on, dir / "c", {.is_bad = bad({batch}, 1)});
      CHECK(once.back == std::vector<std::uint32_t>{std::uint32_t(batch / 3 * 3)});
      CHECK(once == undisturbed);
      const auto always = train(on, dir / "d", {.is_bad = bad({batch}, 1000), .leaves_out = true});
      CHECK(always == without);
      CHECK_FALSE(always == undisturbed);
      CHECK(names_in(dir / "a") == names_in(dir / "c"));
      CHECK(train(on, dir / "e", {.is_bad = bad({batch}, 1), .waits = false}) == undisturbed);
    }
}

TEST_CASE("roll back: gives up if it goes back to one step again and again; newer steps begin anew") {
  const scratch dir;
  const gs::any_cluster on = gs::simulate<roll_back::mesh>(std::vector{2, 1});
  int met = 0;
  const auto counted = [&](int batch) { return batch == 10 && ++met > 0; };
  const std::string said = complaint([&] { train(on, dir / "a", {.is_bad = counted}); });
  CHECK(said.starts_with((dir / "a") + ": has gone back to the checkpoint of step 9 3 times, and no newer one was saved since; the reason "
                                       "to go back is: adam: the gradient of parameter "));
  CHECK(said.ends_with(" is nan, in step 10 on device 0"));
  CHECK(met == 4);
  met = 0;
  CHECK_FALSE(complaint([&] { train(on, dir / "b", {.is_bad = counted, .saving = {.every_steps = 3, .most_roll_backs = 0}}); }).empty());
  CHECK(met == 1);
  const auto undisturbed = train(on, dir / "c"), often = train(on, dir / "d", {.is_bad = bad({3, 7, 11, 14, 18}, 3)});
  CHECK(often.back.size() == 15);
  CHECK(often == undisturbed);
}

TEST_CASE("roll back: without a checkpoint it says so") {
  const scratch dir;
  const gs::any_cluster on = gs::simulate<roll_back::mesh>(std::vector{2, 1});
  CHECK(contains(complaint([&] { train(on, dir / "a", {.is_bad = bad({1}, 1)}); }),
                 (dir / "a") + ": there is no checkpoint to go back to; the reason to go back is: adam: "));
  gs::parameter_store store = make(stores::simulated({2}), 1, 7);
  CHECK(gs::checkpointer(store, dir / "b").save());
  gs::checkpointer checkpoints(store, dir / "b");
  CHECK(complaint([&] { checkpoints.roll_back(std::runtime_error("why")); }) ==
        (dir / "b") + ": has checkpoints; call resume() before roll_back(); the reason to go back is: why");
}

TEST_CASE("roll back: finishes a save in flight; takes the one before a damaged one; goes back in a run that was resumed") {
  const scratch dir;
  gs::parameter_store store = make(stores::simulated({2}));
  texts said;
  {
    gs::checkpointer checkpoints(store, dir / "run", telling(said, {.every_steps = 1, .keep = 3}));
    for (std::uint32_t step = 1; step <= 2; ++step) {
      set_step(store, step);
      checkpoints.save();
    }
    set_step(store, 3);
    checkpoints.after_step();
    CHECK(checkpoints.in_flight());
    set_step(store, 9);
    CHECK(checkpoints.roll_back(std::runtime_error("why")).step == 3);
    CHECK(is_step(store, 3));
    CHECK(said.back() == "gshard: went back from step 9 to the checkpoint of step 3: why\n");
    std::string content = content_of(dir / "run/step-0000000003/part-00001.bin");
    content.back() = char(content.back() ^ 1);
    set_content(dir / "run/step-0000000003/part-00001.bin", content);
    const gs::resumed back = checkpoints.roll_back(std::runtime_error("why"));
    CHECK(back.step == 2);
    CHECK(back.refused.size() == 1);
    CHECK(is_step(store, 2));
    set_step(store, 3);
    CHECK(checkpoints.save());  // replaces the damaged one
    CHECK(names_in(dir / "run") == texts{"latest", "step-0000000001", "step-0000000002", "step-0000000003.1"});
  }
  gs::checkpointer checkpoints(store, dir / "run", telling(said));
  gs::event_log events(store.cluster(), dir / "run");
  checkpoints.log_to(events);
  CHECK(checkpoints.resume()->name == "step-0000000003.1");
  set_step(store, 4);
  CHECK(checkpoints.roll_back(std::runtime_error("why")).name == "step-0000000003.1");
  CHECK(is_step(store, 3));
  CHECK(contains(content_of(events.path()), R"("event":"roll_back","fields":{"step":4,"to":3,"reason":"why"})"));
  for (const char* name : {"1", "2", "3.1"}) fs::remove(dir / ("run/step-000000000" + std::string(name) + "/part-00000.bin"));
  CHECK(contains(complaint([&] { checkpoints.roll_back(std::runtime_error("why")); }), "none of its 3 checkpoints is valid"));
  CHECK(is_step(store, 3));
}
