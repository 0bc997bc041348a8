// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/report/roofline.hpp>

#include "../../complaint.hpp"
#include "sample_run.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gs = gshard;

TEST_CASE("kinds of operations add up to the steps, the longest first") {
  const gs::run_record& run = sample::small().record;
  const std::vector<gs::kind_record> kinds = gs::kinds_of(run, sample::plan);
  double flops = 0, seconds = 0;
  std::int64_t touched = 0, received = 0;
  int steps = 0;
  double again = 0;
  for (const gs::step_record& s : run.steps) again += s.recomputed ? s.flops : 0;
  CHECK(again > 0);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const gs::kind_record& k = kinds[i];
    CHECK(k.steps == std::ranges::count(run.steps, k.kind, [](const auto& s) { return sample::plan.steps[std::size_t(s.step)].kind; }));
    CHECK((i == 0 || kinds[i - 1].seconds >= k.seconds));
    flops += k.flops;
    seconds += k.seconds;
    touched += k.bytes_touched;
    received += k.bytes_received;
    steps += k.steps;
  }
  CHECK(steps == int(run.steps.size()));
  CHECK(seconds == doctest::Approx(gs::seconds_of_steps(run)));
  CHECK(flops == doctest::Approx(gs::flops(sample::plan, sample::small().sizes) + again));
  CHECK(received == sample::plan.bytes_received(sample::small().sizes));
  for (const gs::step_record& s : run.steps) touched -= s.bytes_touched;
  CHECK(touched == 0);
}

TEST_CASE("what bounds a kind is what bounds most of its seconds, not of its steps; its intensity is of all its work") {
  using rows = std::vector<std::pair<gs::limit, double>>;
  for (const rows& all : {rows{{gs::limit::memory, 2}, {gs::limit::arithmetic, 3}, {gs::limit::memory, 2}},  // each step is shorter
                          rows{{gs::limit::memory, 7}, {gs::limit::arithmetic, 3}, {gs::limit::arithmetic, 3}},  // there are fewer steps
                          rows{{gs::limit::arithmetic, 3}, {gs::limit::arithmetic, 3}, {gs::limit::memory, 6.5}}}) {
    gs::run_record run;
    for (const auto& [bound, seconds] : all) {
      gs::step_record s;
      s.bound = bound;
      s.seconds = seconds;
      s.flops = 10;
      s.bytes_touched = 4;
      run.steps.push_back(s);
    }
    const std::vector<gs::kind_record> kinds = gs::kinds_of(run, sample::plan);
    REQUIRE(kinds.size() == 1);
    CHECK(kinds[0].kind == sample::plan.steps[0].kind);
    CHECK(kinds[0].bound == gs::limit::memory);
    CHECK(kinds[0].intensity() == 2.5);
  }
  CHECK(gs::kind_record{}.intensity() == 0);
}

TEST_CASE("roofs are the highest rates that occur") {
  const gs::roofs r = gs::roofs_of(sample::small().record);
  CHECK(r.flops == doctest::Approx(61.5e12));
  CHECK(r.memory_bytes == doctest::Approx(450e9));
  CHECK(r.link_bytes == doctest::Approx(35e9));
  CHECK(gs::roofs_of({}).flops == 0);
}

TEST_CASE("a record of another plan is refused") {
  gs::run_record run;
  run.steps.resize(1);
  for (const int step : {-1, int(sample::plan.steps.size())}) {
    run.steps[0].step = step;
    CHECK(contains(complaint([&] { gs::kinds_of(run, sample::plan); }), "the run has a step " + std::to_string(step)));
  }
}
