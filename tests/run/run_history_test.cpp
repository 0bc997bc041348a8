// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/run/run_history.hpp>

#include "../io/scratch.hpp"

#include <gshard/run/telemetry.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace gs = gshard;

namespace {
using history_mesh = gs::mesh<gs::axis<"x">>;
}

TEST_CASE("history: what telemetry and event log wrote is read") {
  const scratch folder;
  const gs::any_cluster on = gs::simulate<history_mesh>(2);
  for (int start = 0; start < 2; ++start) {
    gs::event_log log(on, folder / "run");
    gs::telemetry watch(on, {.directory = folder / "run", .lists_every = 1});
    for (std::uint32_t n = 0; n < 3; ++n) {
      const auto step = watch.step(n);
      watch.value("loss", n == 1 ? std::nan("") : 1.0 / (n + 1));
      watch.values("load", std::vector<float>{1, 2});
      watch.predicted(0.5);
    }
    log.write("checkpoint", {{"step", 2}});
  }
  const gs::run_history h = gs::read_run_history(folder / "run");
  REQUIRE(h.steps.size() == 1);
  REQUIRE(h.steps[0].size() == 6);
  REQUIRE(h.starts.size() == 2);
  CHECK(h.starts[0].mesh == std::vector<std::pair<std::string, int>>{{"x", 2}});
  CHECK(h.starts[1].time >= h.starts[0].time);
  const gs::step_history& last = h.steps[0][5];
  CHECK(last.step == 2);
  CHECK(last.predicted == 0.5);
  CHECK(h.names.at(last.values.at(0).first) == "loss");
  CHECK(last.values.at(0).second == doctest::Approx(1.0 / 3));
  CHECK(std::isnan(h.steps[0][1].values.at(0).second));
  CHECK(h.names.at(last.lists.at(0).first) == "load");
  CHECK(last.lists.at(0).second == std::vector<float>{1, 2});
  REQUIRE(h.events.size() == 6);
  CHECK(h.events.back().event == "checkpoint");
  CHECK(h.events.back().fields["step"] == 2);
  CHECK(std::abs(h.events.back().time - last.time) < 60);
  CHECK(h.logs_hold);
  CHECK(h.unread == 0);
}

TEST_CASE("history: of values that several processes give, those of the first are kept; lines that are no records are counted") {
  const scratch folder;
  set_content(folder / "telemetry-00000.jsonl",
              "{\"telemetry\":1}\n{\"step\":1,\"seconds\":0.5,\"values\":{\"loss\":\"NaN\",\"a\":\"-Infinity\"}}\n{\"st");
  set_content(folder / "telemetry-00002.jsonl",
              "\n[]\n{\"step\":-1,\"seconds\":1}\n{\"step\":1,\"seconds\":\"x\"}\n{\"step\":1,\"seconds\":0.25,\"values\":{\"loss\":3,\"mine\":4},"
              "\"received\":3,\"lists\":{\"l\":1}}\n");
  set_content(folder / "events-00000.jsonl", "{\"n\":1}\nnonsense\n");
  set_content(folder / "events-1.txt", "not read");
  const gs::run_history h = gs::read_run_history(folder / "");
  REQUIRE(h.steps.size() == 3);
  CHECK(h.steps[0].size() == 1);
  CHECK(h.steps[0][0].values.size() == 2);
  CHECK(h.steps[0][0].values[1].second < -1e300);
  CHECK(h.steps[1].empty());
  REQUIRE(h.steps[2].size() == 1);
  REQUIRE(h.steps[2][0].values.size() == 1);
  CHECK(h.names[h.steps[2][0].values[0].first] == "mine");
  CHECK(h.unread == 5);
  CHECK_FALSE(h.logs_hold);
  CHECK(h.events.empty());
  CHECK(contains(complaint([&] { gs::read_run_history(folder / "absent"); }), "absent: cannot be read: No such file"));
  const scratch empty;
  CHECK(contains(complaint([&] { gs::read_run_history(empty / ""); }), "has no telemetry-*.jsonl or events-*.jsonl"));
  CHECK(gs::detail::unix_seconds_of("2025-11-24T16:00:00.250000Z") == doctest::Approx(1764000000.25).epsilon(1e-12));
  CHECK(std::isnan(gs::detail::unix_seconds_of("yesterday")));
}
