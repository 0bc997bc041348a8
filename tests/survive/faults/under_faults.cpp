// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every system call of a save fails in turn: earlier checkpoints still load. Run with the library of faults.cpp preloaded.
#include "fault.hpp"

#include "../run_stores.hpp"

#include "../../io/scratch.hpp"

#include <gshard/io/checkpoint.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>

namespace gs = gshard;
using faults::fault, faults::is_harmless, faults::kinds;
using run_stores::is_step, run_stores::set_step, run_stores::telling, run_stores::texts;

namespace {

gs::parameter_store small_store(int devices, std::uint32_t step) {
  gs::parameter_store store = stores::make(stores::simulated({devices}), stores::usual(), 3);
  set_step(store, step);
  return store;
}

}  // namespace

TEST_CASE("faults: every call of a save by a checkpointer fails in turn") {
  const scratch dir;
  gs::parameter_store store = small_store(2, 1);
  texts said;
  gs::checkpointer checkpoints(store, dir / "run", telling(said));
  REQUIRE(checkpoints.save());
  std::uint32_t step = 1, last = 1;
  int failures = 0, saves = 0;
  for (const auto& [how, later] : kinds) {
    CAPTURE(how);
    CAPTURE(later);
    for (int nth = 1;; ++nth) {
      CAPTURE(nth);
      set_step(store, ++step);
      said.clear();
      fault f(nth, how, later);
      const bool saved = checkpoints.save();
      if (!f.end()) break;
      ++saves;
      failures += saved ? 0 : 1;
      if (is_harmless(how)) CHECK(saved);
      if (!saved) CHECK(said.size() == 1);
      texts refused;
      gs::parameter_store other = small_store(3, 0);
      const auto back = gs::checkpointer(other, dir / "run", telling(refused)).resume();
      REQUIRE(back.has_value());
      CHECK(refused.empty());
      CHECK((back->step == step || (!saved && back->step == last)));
      CHECK(is_step(other, back->step));
      if (saved)
        last = step;
      else
        last = back->step;
    }
    CHECK(checkpoints.save());
    last = step;
  }
  MESSAGE(saves << " saves, of which " << failures << " failed");
  CHECK(failures > 100);
  for (const std::string& name : run_stores::names_in(dir / "run")) CHECK((name == "latest" || gs::detail::step_name::parse(name)));
  CHECK(run_stores::names_in(dir / "run").size() == 3);  // leftovers of failed saves are removed
}

TEST_CASE("faults: every call of a resume fails in turn") {
  const scratch dir;
  {
    gs::parameter_store store = small_store(2, 1);
    gs::checkpointer checkpoints(store, dir / "run");
    REQUIRE(checkpoints.save());
    set_step(store, 2);
    REQUIRE(checkpoints.save());
  }
  for (const auto& [how, later] : kinds) {
    CAPTURE(how);
    for (int nth = 1;; ++nth) {
      CAPTURE(nth);
      texts said;
      bool found = false;
      gs::parameter_store store = small_store(3, 9);
      fault f(nth, how, later);
      const std::string problem = complaint([&] { found = gs::checkpointer(store, dir / "run", telling(said)).resume().has_value(); });
      if (!f.end()) break;
      const bool refused = std::ranges::any_of(said, [](const std::string& text) { return contains(text, "is refused"); });
      CHECK((found || !problem.empty()));
      if (is_harmless(how)) CHECK(problem == "");
      CHECK(is_step(store, problem.empty() ? (refused ? 1 : 2) : 9));
    }
  }
}

TEST_CASE("faults: every call of a save to one safetensors file fails in turn") {
  const scratch dir;
  gs::parameter_store store = small_store(2, 1);
  const gs::checkpoint_options everything{.scope = gs::checkpoint_scope::everything};
  gs::save(store, dir / "f", everything);
  std::uint32_t step = 1, last = 1;
  for (const auto& [how, later] : kinds) {
    CAPTURE(how);
    for (int nth = 1;; ++nth) {
      CAPTURE(nth);
      set_step(store, ++step);
      fault f(nth, how, later);
      const std::string problem = complaint([&] { gs::save(store, dir / "f", everything); });
      if (!f.end()) break;
      if (is_harmless(how)) CHECK(problem == "");
      gs::parameter_store other = small_store(3, 0);
      gs::load(other, dir / "f", everything);
      CHECK((other.steps() == step || (!problem.empty() && other.steps() == last)));
      CHECK(is_step(other, other.steps()));
      last = other.steps();
    }
    gs::save(store, dir / "f", everything);
    last = step;
  }
  CHECK(dir.entries() == 1);
}
