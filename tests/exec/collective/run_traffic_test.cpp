// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/collective/run_traffic.hpp>

#include <gshard/exec/backend/simulated.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace gs = gshard;

TEST_CASE("run_traffic: a step and its run count what arrives during the step; a run counts all that comes from other nodes") {
  gs::simulated b({2});
  gs::detail::run_traffic run;
  b.count(0, {1, 1000, 0, 0, 1000});  // before the run
  for (int again = 0; again < 2; ++again) {
    run.begin(b);
    std::vector<std::int64_t> step{0, 0};
    const auto counts = [&](std::int64_t first, std::int64_t second) {
      return run.count(b, step, [&] {
        b.count(0, {1, first, 0, 0, first});
        b.count(1, {0, 0, 1, second, 0});
      });
    };
    CHECK(counts(10, 30) == std::pair<std::size_t, std::int64_t>{1, 30});
    CHECK(counts(25, 1) == std::pair<std::size_t, std::int64_t>{0, 5});
    CHECK(step == std::vector<std::int64_t>{35, 31});
    b.count(1, {0, 0, 0, 0, 7});  // between steps
    run.end(b);
    CHECK(std::vector(run.bytes().begin(), run.bytes().end()) == std::vector<std::int64_t>{35, 31});
    CHECK(std::vector(run.between_nodes().begin(), run.between_nodes().end()) == std::vector<std::int64_t>{35, 7});
  }
}
