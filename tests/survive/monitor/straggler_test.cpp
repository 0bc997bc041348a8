// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/monitor/straggler.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace gs = gshard;

namespace {

/// Windows of n processes with 1 s per step. One process takes `slow` in the first `steps` steps.
std::vector<std::vector<double>> windows(std::size_t n, std::size_t one, double slow, std::size_t steps) {
  std::vector<std::vector<double>> all(n, std::vector<double>(10, 1.0));
  for (std::size_t i = 0; i < steps; ++i) all[one][i] = slow;
  return all;
}

}  // namespace

TEST_CASE("straggler: the lower median") {
  CHECK(gs::lower_median({}) == 0);
  CHECK(gs::lower_median({3}) == 3);
  CHECK(gs::lower_median({5, 2}) == 2);
  CHECK(gs::lower_median({5, 2, 9}) == 5);
  CHECK(gs::lower_median({4, 1, 3, 2}) == 2);
}

TEST_CASE("straggler: over 1.3 times the median in 5 of 10 steps, and no other process") {
  for (const std::size_t n : {2u, 3u, 4u, 8u})
    for (std::size_t one = 0; one < n; ++one)
      for (std::size_t steps = 0; steps <= 10; ++steps)
        for (const double slow : {1.29, 1.31, 20.0}) {
          const auto rows = gs::judge_last_steps(windows(n, one, slow, steps), {});
          REQUIRE(rows.size() == n);
          for (std::size_t p = 0; p < n; ++p) {
            CHECK(rows[p].process == int(p));
            CHECK(rows[p].slow_steps == (p == one && slow > 1.3 ? steps : 0));
            CHECK(rows[p].median == doctest::Approx(1));
            CHECK(rows[p].seconds == doctest::Approx(p == one ? (slow * double(steps) + 10 - double(steps)) / 10 : 1));
          }
        }
  gs::straggler_rule patient;
  patient.excess = 0.5;
  CHECK(gs::judge_last_steps(windows(3, 1, 1.4, 10), patient)[1].slow_steps == 0);
  CHECK(gs::judge_last_steps(windows(3, 1, 1.6, 10), patient)[1].slow_steps == 10);
  CHECK(gs::judge_last_steps({}, {}).empty());
  CHECK(gs::judge_last_steps(std::vector<std::vector<double>>{{1, 2}}, {})[0].slow_steps == 0);
}
