// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// All threads of a run at once: started runs, the writer of checkpoints, telemetry and the event log. tests/run.sh --tsan checks for races.
#include <gshard/gshard.hpp>
#include <gshard/exec/tensor/local_blocks.hpp>
#include <gshard/io.hpp>
#include <gshard/survive/checkpoint/checkpointer.hpp>
#include <gshard/survive/log/event_log.hpp>
#include <gshard/survive/monitor/telemetry.hpp>

#include "../io/scratch.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace gs = gshard;
using gs::P, gs::none;

namespace {

constexpr auto regression = [](auto& m, auto x, auto y, auto rate) {
  auto h = gs::einsum<"BM,MH->BH">(x, m.param("w1", "MH", P<none, "model">{}, gs::init::fan_in("M")));
  h = gs::dropout(gs::relu(h), 0.3);
  auto error = gs::einsum<"BH,HO->BO">(h, m.param("w2", "HO", gs::init::fan_in("H"))) - y;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using mesh = gs::mesh<gs::axis<"data">, gs::axis<"model">>;
using training = gs::program<regression, mesh, gs::in<"BM", P<"data", none>>, gs::in<"BO", P<"data", none>>, gs::in<"">>;

struct result {
  std::vector<float> losses;
  std::vector<std::string> tensors;
  bool operator==(const result&) const = default;
};

result of_store(const gs::parameter_store& store, std::vector<float> losses) {
  result r{std::move(losses), {}};
  for (const auto& [name, entry] : store.entries())
    for (std::size_t i = 0; i < entry.value.data.size(); ++i)
      r.tensors.push_back(name + std::string(reinterpret_cast<const char*>(entry.value.data[i]), std::size_t(entry.value.bytes(i))));
  return r;
}

/// Trains to step `last`, from the newest checkpoint if a directory is given. Every step is started asynchronously, and saved while the
/// next ones run.
result train(const std::string& directory, std::uint32_t last, std::vector<float> losses = {}) {
  const gs::any_cluster on = gs::simulate<mesh>({2, 2});
  gs::parameter_store store(on, 42);
  gs::executable<training> step(on, {{'B', 12}, {'M', 50}, {'H', 90}, {'O', 1}}, store);
  gs::tensor<float, P<"data", none>> x(on, {12, 50}), y(on, {12, 1});
  gs::tensor<float, P<>> rate(on, {}), loss(on, {});
  step.bind_input<0>(x);
  step.bind_input<1>(y);
  step.bind_input<2>(rate);
  step.bind_output<0>(loss);
  std::optional<gs::event_log> events;
  std::optional<gs::telemetry> watch;
  std::optional<gs::checkpointer> checkpoints;
  if (!directory.empty()) {
    events.emplace(on, directory);
    watch.emplace(on, gs::telemetry_options{.directory = directory, .prometheus = directory, .prometheus_seconds = 0});
    watch->add(step);
    checkpoints.emplace(store, directory, gs::checkpointer_options{.every_steps = 1});
    checkpoints->log_to(*events);
    checkpoints->resume();
  }
  losses.resize(store.steps());
  while (store.steps() < last) {
    const float number = float(store.steps() + 1);
    gs::for_each_local_shard(x, [&](const auto& s) {
      for (std::size_t i = 0; i < s.span().size(); ++i) s.span()[i] = float(i % 7) / number;
    });
    gs::for_each_local_shard(y, [&](const auto& s) { std::ranges::fill(s.span(), number); });
    gs::for_each_local_shard(rate, [](const auto& s) { s.span()[0] = 0.05f; });
    if (watch) watch->begin_step(store.steps());
    const bool saves_beside = store.steps() % 2 == 1;  // after_step, like any later call on the cluster, waits for the run
    step.start_bound();
    if (events) events->write("started");  // during the run
    if (checkpoints && saves_beside) checkpoints->after_step();
    step.wait();
    losses.push_back(loss.local_shard(0).data[0]);
    if (watch) {
      watch->value("loss", losses.back());
      watch->end_step();
    }
    if (checkpoints && !saves_beside) checkpoints->after_step();
  }
  if (checkpoints) checkpoints->save();
  return of_store(store, losses);
}

}  // namespace

TEST_CASE("training together with its threads: the same bits as alone, also from its checkpoints") {
  const scratch dir;
  const result alone = train("", 30);
  CHECK(train(dir / "run", 30) == alone);
  const result first = train(dir / "resumed", 17);
  CHECK(train(dir / "resumed", 30, first.losses) == alone);
  CHECK(alone.losses.front() != alone.losses.back());
  CHECK(gs::check_event_log(dir / "run/events-00000.jsonl").unaltered);
}

TEST_CASE("while a thread runs a program on a cluster, every verb of another thread on the cluster says the rule that it breaks") {
  const scratch dir;
  const gs::cluster<mesh> on = gs::simulate<mesh>({2, 2});
  gs::parameter_store store(on, 42);
  const gs::dims extents{{'B', 12}, {'M', 50}, {'H', 90}, {'O', 1}};
  gs::executable<training> step(on, extents, store);
  const std::vector<float> data(12 * 50, 1), labels(12, 1), rate(1, 0.1f);
  gs::checkpointer checkpoints(store, dir / "run", gs::checkpointer_options{.every_steps = 1});
  checkpoints.resume();
  const auto x = gs::from_global<float, P<"data", none>>(on, {12, 50}, data);
  gs::save(store, dir / "saved");
  gs::save_npy(dir / "x.npy", x);
  std::vector<float> mine(12 * 50);
  gs::local_blocks<float, P<"data", none>> blocks(on, {12, 50}, {{mine.data(), {0, 0}, {12, 50}, {50, 1}}});
  const std::vector<std::pair<const char*, std::function<void()>>> verbs{
      {"cluster", [&] { gs::any_cluster(mesh::shape, {std::shared_ptr<void>(), &on.backend()}); }},
      {"executable", [&] { gs::executable<training>(on, extents, store); }},
      {"call", [&] { step(data, labels, rate); }},
      {"operation", [&] { static_cast<void>(x + x); }},
      {"reshard", [&] { gs::reshard<P<none, "data">>(x); }},
      {"to_global", [&] { gs::to_global(x); }},
      {"parameter", [&] { gs::to_global<float>(store, "w2"); }},
      {"set_global", [&] { gs::set_global<float>(store, "w2", std::vector<float>(90)); }},
      {"check_replicas", [&] { gs::check_replicas(store); }},
      {"local_blocks", [&] { blocks.to_tensor(); }},
      {"save", [&] { gs::save(store, dir / "saved"); }},
      {"load", [&] { gs::load(store, dir / "saved"); }},
      {"load_notes", [&] { gs::load_notes(on, dir / "saved"); }},
      {"save_npy", [&] { gs::save_npy(dir / "x.npy", x); }},
      {"load_npy", [&] { gs::load_npy<float, P<"data", none>>(on, dir / "x.npy"); }},
      {"event_log", [&] { gs::event_log(on, dir / "log"); }},
      {"telemetry", [&] { gs::telemetry(on, gs::telemetry_options{}); }},
      {"checkpointer", [&] { gs::checkpointer(store, dir / "other"); }},
      {"after_step", [&] { checkpoints.after_step(); }},
      {"save of a checkpointer", [&] { checkpoints.save(); }},
      {"resume", [&] { checkpoints.resume(); }},
      {"finish", [&] { checkpoints.finish(); }},
  };
  bool tried = false;
  step.executor().hook = [&](const gs::node&, bool) {
    if (std::exchange(tried, true)) return;
    std::thread([&] {
      for (const auto& [name, verb] : verbs) {
        CAPTURE(name);
        CHECK(complaint(verb) == "cluster: one thread at a time may use it; two do at the same time");
      }
    }).join();
  };
  step(data, labels, rate);
  REQUIRE(tried);
  CHECK(store.steps() == 1);
  for (const auto& [name, verb] : verbs) {
    CAPTURE(name);
    CHECK(complaint(verb) == "");
  }
}
