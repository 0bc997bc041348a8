// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/monitor/telemetry.hpp>

#include "../../io/scratch.hpp"

#include <gshard/exec/program/executable.hpp>
#include <gshard/gshard.hpp>
#include <gshard/survive/monitor/run_history.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <string>
#include <vector>

namespace gs = gshard;

namespace {

inline constexpr auto summed = [](auto&, auto x, auto y) { return gs::einsum<"AB,BC->AC">(x, y); };
using two = gs::mesh<gs::axis<"x">>;
using sums = gs::program<summed, two, gs::in<"AB", gs::P<gs::none, "x">>, gs::in<"BC", gs::P<"x", gs::none>>>;

inline constexpr auto careful_step = [](auto& m, auto x, auto rate) {
  auto y = gs::einsum<"BM,M->B">(x, m.param("w", "M", gs::init::fan_in("M")));
  gs::adam{.if_not_finite = gs::not_finite::skip}.minimize(m, gs::mean(y * y), rate);
};
using careful = gs::program<careful_step, two, gs::in<"BM", gs::P<"x", gs::none>>, gs::in<"">>;

std::vector<nlohmann::json> lines_of(const std::string& path) {
  std::vector<nlohmann::json> all;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) all.push_back(nlohmann::json::parse(text));
  return all;
}

}  // namespace

TEST_CASE("telemetry: steps of a program, its bytes by kind, its memory, and the program's values") {
  const scratch folder;
  const auto on = gs::simulate<two>(2);
  gs::executable<sums> run(on, {{'A', 4}, {'B', 6}, {'C', 2}});
  const std::int64_t arena = run.executor().arena_bytes();  // before an input is bound to the caller's memory
  std::vector<float> x(24, 1), y(12, 2);
  {
    gs::telemetry watch(on, {.directory = folder / "run", .lists_every = 2});
    watch.add(run, 0.25);
    watch.value("outside", 1);  // outside of any step
    for (std::uint32_t n = 0; n < 3; ++n) {
      const auto step = watch.step(n);
      for (std::uint32_t i = 0; i < n; ++i) run(x, y);
      watch.value("loss", 3.0 - n);
      watch.values("load", std::vector<float>{1, 2});
      if (n == 1) watch.predicted(1);
    }
    const auto failed = [&] {
      const auto step = watch.step(3);
      throw gs::error("the step fails");
    };
    CHECK(complaint(failed) == "the step fails");
    const auto bound = gs::from_global<float, gs::P<gs::none, "x">>(on, {4, 6}, x);
    run.bind_input<0>(bound);  // the next run makes a new executor
    const auto step = watch.step(3);
    run(gs::bound, y);
  }
  const auto all = lines_of(folder / "run/telemetry-00000.jsonl");
  REQUIRE(all.size() == 5);
  CHECK(all[0]["telemetry"] == 1);
  CHECK(all[0]["mesh"]["x"] == 2);
  const std::int64_t bytes = run.executor().received(gs::op::all_reduce).bytes;
  CHECK(bytes > 0);
  for (std::uint32_t n = 0; n < 4; ++n) {
    const nlohmann::json& line = all[n + 1];
    CHECK(line["step"] == n);
    CHECK(line["seconds"] > 0.0);
    CHECK(line["waiting"] == 0.0);
    const std::uint32_t runs = n == 3 ? 1 : n;
    if (runs == 0) CHECK(line["received"].empty());
    else CHECK(line["received"] == nlohmann::json{{"all_reduce", runs * bytes}});
    CHECK(line["arena"] == 2 * (n < 3 ? arena : run.executor().arena_bytes()));
#ifdef __linux__
    CHECK(line["resident"] > 1000000);
#endif
    CHECK(line.value("predicted", -1.0) == (n == 0 ? -1 : 0.25 * runs + (n == 1)));
    if (n < 3) CHECK(line["values"] == nlohmann::json{{"loss", 3.0 - n}});
    CHECK(line.contains("lists") == (n == 0 || n == 2));
  }
}

TEST_CASE("telemetry: a batch that the optimizer skipped leaves a line and an event") {
  gs::parameter_store store(gs::simulate<two>(2));
  gs::executable<careful> train(store.cluster(), {{'B', 2}, {'M', 2}}, store);
  const scratch folder;
  {
    gs::event_log log(store.cluster(), folder / "");
    gs::telemetry watch(store.cluster(), {.directory = folder / "", .events = &log, .every = 3});
    watch.add(train);
    for (int batch = 0; batch < 6; ++batch) {
      const auto step = watch.step(store.steps());
      train(std::vector<float>(4, batch == 2 ? std::numeric_limits<float>::infinity() : 1.0f), std::vector<float>(1, 0.01f));
      watch.value("batch", batch);
    }
    const auto step = watch.step(100);  // a step without a run: the program's last run does not belong to it
  }
  std::vector<std::string> found;
  for (const auto& line : lines_of(folder / "telemetry-00000.jsonl"))
    if (line.contains("step")) found.push_back(line["step"].dump() + (line.value("skipped", false) ? " skipped" : ""));
  CHECK(found == std::vector<std::string>{"0", "2 skipped", "3"});  // every third step, and the skipped one
  found.clear();
  for (const auto& line : lines_of(folder / "events-00000.jsonl"))
    if (line["event"] == "skipped") found.push_back(line["fields"].dump());
  CHECK(found == std::vector<std::string>{"{\"step\":2}"});
  const gs::run_history h = gs::read_run_history(folder / "");
  CHECK(h.skipped == 1);
  CHECK(h.repeated == 0);
}

TEST_CASE("telemetry: the predicted time of a piece of hardware, and nothing but stragglers without files") {
  const gs::any_cluster on = gs::simulate<two>(2);
  gs::executable<sums> run(on, {{'A', 4}, {'B', 6}, {'C', 2}});
  const scratch folder;
  const gs::hardware chips = gs::parse_hardware("slingshot-11:2");
  {
    gs::telemetry watch(on, {.directory = folder / ""}), no_files(on, {.stragglers = {.last_steps = 2}});
    watch.add(run, chips);
    watch.add(run.executor());
    for (std::uint32_t n = 0; n < 20; ++n) {
      const auto step = watch.step(n), other = no_files.step(n);
      run(std::vector<float>(24, 1), std::vector<float>(12, 1));
    }
  }
  const auto all = lines_of(folder / "telemetry-00000.jsonl");
  REQUIRE(all.size() == 21);
  gs::dry_run_options how;
  how.activations = gs::recompute::never;
  const double predicted = gs::dry_run(run.executor().plan(), run.executor().sizes(), chips, how).seconds;
  CHECK(all[1]["predicted"].get<double>() == doctest::Approx(predicted));
}
