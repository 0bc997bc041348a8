// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/monitor/telemetry.hpp>

#include "../../io/shared_scratch.hpp"
#include "../../mpi_world.hpp"

#include <gshard/gshard.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace gs = gshard;
using mpi_world::rank, mpi_world::ranks;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;
inline constexpr auto contracted = [](auto&, auto x, auto y) { return gs::einsum<"AB,BC->AC">(x, y); };
using product = gs::program<contracted, mesh, gs::in<"AB", gs::P<gs::none, "x">>, gs::in<"BC", gs::P<"x", gs::none>>>;

inline constexpr auto careful_step = [](auto& m, auto x, auto rate) {
  auto y = gs::einsum<"BM,M->B">(x, m.param("w", "M", gs::init::fan_in("M")));
  gs::adam{.if_not_finite = gs::not_finite::skip}.minimize(m, gs::mean(y * y), rate);
};
using careful = gs::program<careful_step, mesh, gs::in<"BM", gs::P<"x", gs::none>>, gs::in<"">>;

std::vector<nlohmann::json> lines_in(const std::string& path) {
  std::vector<nlohmann::json> all;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) all.push_back(nlohmann::json::parse(text));
  return all;
}
std::string number_of(int process) { return "0000" + std::to_string(process); }

}  // namespace

TEST_CASE("telemetry on ranks: waiting, and a straggler that comes and goes") {
  const shared_scratch folder;
  const gs::any_cluster on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  gs::executable<product> run(on, {{'A', 4}, {'B', 12}, {'C', 2}});
  const std::vector<float> x(48, 1), y(24, 1);
  std::vector<gs::slow_process> told;
  gs::event_log_head head;
  {
    gs::event_log log(on, folder / "run");
    gs::telemetry watch(on, {.directory = folder / "run",
                             .stragglers = {.ratio = 3, .least = 5, .last_steps = 6},
                             .on_straggler = [&](const gs::slow_process& s) { told.push_back(s); },
                             .events = &log});
    watch.add(run);
    for (std::uint32_t n = 0; n < 19; ++n) {
      const auto step = watch.step(n);
      const bool is_slow = rank() == ranks() - 1 && n < 6;
      std::this_thread::sleep_for(std::chrono::milliseconds(is_slow ? 400 : n < 6 ? 10 : 40));
      run(x, y);
      watch.value("rank", rank());
    }
    head = log.head();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const auto all = lines_in(folder / ("run/telemetry-" + number_of(rank()) + ".jsonl"));
  REQUIRE(all.size() == 20);
  CHECK(all[0]["process"] == rank());
  CHECK(all[0]["processes"] == ranks());
  double waiting = 0;
  for (std::size_t n = 1; n < all.size(); ++n) {
    CHECK(all[n]["step"] == n - 1);
    CHECK(all[n]["values"]["rank"] == rank());
    CHECK(all[n]["waiting"] <= all[n]["seconds"]);
    if (ranks() == 1) CHECK(all[n]["received"].empty());
    else CHECK(all[n]["received"]["all_reduce"] > 0);
    if (n <= 6) waiting += all[n]["waiting"].get<double>();
  }
  if (ranks() == 1) CHECK(waiting == 0);
  else if (rank() < ranks() - 1) CHECK(waiting > 0);  // for the last rank
  CHECK(gs::check_event_log(folder / ("run/events-" + number_of(rank()) + ".jsonl"), std::vector{head}).unaltered);
  if (rank() > 0 || ranks() == 1) {
    CHECK(told.empty());
    return;
  }
  const std::size_t all_told = told.size();
  std::erase_if(told, [](const gs::slow_process& s) { return s.process != ranks() - 1; });  // the machine may delay the others
  REQUIRE(!told.empty());
  CHECK(told[0].step == 6);
  CHECK(told[0].slow_steps >= 5);
  CHECK(told[0].last_steps == 6);
  CHECK(!told[0].host.empty());
  CHECK_FALSE(told[0].ended);
  REQUIRE(told.size() >= 2);
  CHECK(told[1].ended);
  std::vector<std::string> events;
  for (const nlohmann::json& record : lines_in(folder / "run/events-00000.jsonl")) events.push_back(record["event"]);
  CHECK(events.size() == 2 + all_told);
  CHECK(std::count(events.begin(), events.end(), "straggler") >= 1);
  CHECK(std::count(events.begin(), events.end(), "straggler_ended") >= 1);
}

TEST_CASE("telemetry and event log on ranks: what one process cannot open, all refuse") {
  const shared_scratch folder;
  const gs::any_cluster on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  const std::string mine = rank() == ranks() - 1 ? folder / "no/such" : folder / "good";
  if (rank() == 0) set_content(folder / "no", "a file");
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(contains(complaint([&] { gs::telemetry watch(on, {.directory = mine}); }), "/no"));
  CHECK(contains(complaint([&] { gs::event_log log(on, mine); }), "/no"));
  if (ranks() > 1) {
    gs::telemetry_options other;
    other.stragglers.last_steps = rank() == 0 ? 10 : 5;
    CHECK(contains(complaint([&] { gs::telemetry watch(on, other); }), "the processes disagree on the last steps of the rule for stragglers"));
    other = {};
    other.stragglers.ratio = rank() == 0 ? 1.3 : 1.5;
    CHECK(contains(complaint([&] { gs::telemetry watch(on, other); }), "the processes disagree on the ratio of stragglers"));
  }
  gs::telemetry watch(on);
  for (std::uint32_t n = 0; n < 11; ++n) const auto step = watch.step(n);
}

TEST_CASE("telemetry on ranks: a skipped batch has a mark on every rank, and an event on the leader") {
  const shared_scratch folder;
  gs::parameter_store store(gs::on_mpi<mesh>(MPI_COMM_WORLD));
  gs::executable<careful> train(store.cluster(), {{'B', 12}, {'M', 2}}, store);
  {
    gs::event_log log(store.cluster(), folder / "run");
    gs::telemetry watch(store.cluster(), {.directory = folder / "run", .events = &log});
    watch.add(train);
    for (int batch = 0; batch < 3; ++batch) {
      const auto step = watch.step(store.steps());
      std::vector<float> x(24, 1);
      if (batch == 1) x[23] = std::numeric_limits<float>::infinity();  // on the last rank
      train(x, std::vector<float>(1, 0.01f));
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const auto all = lines_in(folder / ("run/telemetry-" + number_of(rank()) + ".jsonl"));
  REQUIRE(all.size() == 4);
  for (std::size_t n = 1; n < 4; ++n) {
    CHECK(all[n]["step"] == (n == 1 ? 0 : 1));
    CHECK(all[n].value("skipped", false) == (n == 2));
  }
  int events = 0;
  for (const auto& line : lines_in(folder / ("run/events-" + number_of(rank()) + ".jsonl"))) events += line["event"] == "skipped";
  CHECK(events == (rank() == 0));
}

TEST_CASE("telemetry on ranks: a rank in another call is told so") {
  if (ranks() == 1) return;
  const gs::any_cluster on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  gs::telemetry watch(on, {.stragglers = {.last_steps = 1}});
  { const auto first = watch.step(0); }
  const std::string text = complaint([&] {
    if (rank() == 0) gs::telemetry other(on);
    else const auto second = watch.step(1);
  });
  CHECK(contains(text, "the processes make different calls"));
}

TEST_CASE("telemetry on ranks: states of processes that this run does not have are gone, and each process has its own") {
  const shared_scratch folder;
  const std::string state = gs::detail::telemetry_totals().prometheus();
  if (rank() == 0)
    for (int p = 0; p < 9; ++p) set_content(folder / ("gshard-" + number_of(p) + ".prom"), state);
  MPI_Barrier(MPI_COMM_WORLD);
  {
    const gs::telemetry watch(gs::on_mpi<mesh>(MPI_COMM_WORLD), {.prometheus = folder / ""});
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int p = 0; p < 9; ++p) CHECK(content_of(folder / ("gshard-" + number_of(p) + ".prom")).empty() == (p >= ranks()));
  MPI_Barrier(MPI_COMM_WORLD);
}
