// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/run/run_page_data.hpp>

#include "sample_history.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

namespace gs = gshard;

TEST_CASE("page of a run: what was done again counts once, as it was done last") {
  const gs::run_history h = sample_history(3, 100, 4);
  const auto j = gs::detail::run_page_data(h, "a run").json();
  CHECK(j["steps"] == 100);
  CHECK(j["first"] == 0);
  CHECK(j["last"] == 99);
  CHECK(j["repeated"] == 4);
  CHECK(j["restarts"] == 1);
  CHECK(j["stragglers"] == 1);
  CHECK(j["starts"][0]["last"] == 39);
  CHECK(j["starts"][0]["end"] == "no word");
  CHECK(j["starts"][1]["first"] == 36);
  CHECK(j["buckets"]["count"] == 100);
  CHECK(j["rows"].size() == 3);
  CHECK(j["received"].size() == 2);
  CHECK(j["received"][0]["per_step"][50].get<double>() == doctest::Approx(8 << 20).epsilon(1e-3));  // four digits
  CHECK(j["received"][0]["bytes"] == 300.0 * (8 << 20));
  CHECK(j["values"][0]["name"] == "loss");
  CHECK(j["values"][0]["not_finite"] == std::vector<int>{25});
  CHECK(j["values"][0]["mean"][25].is_null());
  CHECK(j["values"][0]["mean"][0].get<double>() == doctest::Approx(7.5));
  CHECK(j["lists"][0]["columns"][50].size() == 4);
  CHECK(j["lists"][0]["columns"][51].is_null());
  CHECK(j["mean_step"].get<double>() > .4);
  CHECK(j["events"].size() == h.events.size());
}

TEST_CASE("page of a run: its size does not grow with steps, processes, experts and events") {
  for (const auto& [processes, steps, experts] : {std::tuple(2u, 100000u, 16u), std::tuple(300u, 1000u, 2048u)}) {
    gs::run_history h = sample_history(processes, steps, experts);
    while (h.events.size() < 20000) h.events.push_back(h.events[h.events.size() / 2]);
    const auto j = gs::detail::run_page_data(h, "").json();
    CHECK(j.dump().size() < 1900000);
    CHECK(j["values"][0]["mean"].size() <= 800);
    CHECK(j["rows"].size() <= 128);
    CHECK(j["lists"][0]["columns"][0].size() <= 128);
    CHECK(j["events"].size() == 2000);
    CHECK(j["event_count"] == 20000);
  }
}

TEST_CASE("page of a run: without steps, and without anything") {
  gs::run_history h;
  auto j = gs::detail::run_page_data(h, "").json();
  CHECK_FALSE(j.contains("steps"));
  h = sample_history(1, 20, 1);
  h.summary = {};
  h.processes = 0;
  h.starts.clear();
  j = gs::detail::run_page_data(h, "").json();
  CHECK_FALSE(j.contains("steps"));
  CHECK(j["events"].size() == h.events.size());
}
