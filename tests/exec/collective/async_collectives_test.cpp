// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/collective/async_collectives.hpp>

#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/exec/program/executable.hpp>
#include <gshard/kernel_headers.hpp>
#include <gshard/ops/reduce/reduce.hpp>
#include <gshard/train/adam.hpp>

#include "../backend/failing_exchanges.hpp"
#include "../backend/hasty_exchanges.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::P, gs::none;

namespace {

// Weights are sharded over the data axis: they are gathered, and their gradients are reduce-scattered.
inline constexpr auto training_step = [](auto& m, auto x, auto rate) {
  gs::symbol y = x;
  for (int i = 0; i < 20; ++i) {
    const auto layer = m.scope(i);
    const auto w = i % 2 ? layer.param("w", "MM", P<"data", none>{}, gs::init::fan_in("M")) : layer.param("w", "MM", gs::init::fan_in("M"));
    y = y + gs::relu(gs::einsum<"BM,MN->BN">(y, w));
  }
  const auto loss = gs::sum(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using line = gs::mesh<gs::axis<"data">>;
using program = gs::program<training_step, line, gs::in<"BM", P<"data", none>>, gs::in<"">>;

constexpr std::int64_t rows = 36, width = 45;  // unevenly sharded over several devices
constexpr gs::dims sizes{{'B', rows}, {'M', width}};
constexpr float rate = 1e-2f;

std::vector<float> data() {
  std::vector<float> x(std::size_t(rows * width));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(int(i * 7 % 23) - 11) / 16;
  return x;
}

struct trained {
  std::shared_ptr<failing_exchanges> backend;
  gs::executable<program> step;

  explicit trained(int devices)
      : backend(std::make_shared<failing_exchanges>(std::vector{devices})), step(gs::any_cluster(line::shape, backend), sizes) {}
  float run() {
    const std::vector<float> x = data();
    return step(std::span<const float>(x), std::span<const float>(&rate, 1)).item();
  }
};

}  // namespace

TEST_CASE("steps run while communication is under way, and results are those of one device") {
  trained alone(1);
  std::vector<float> losses;
  for (int i = 0; i < 3; ++i) losses.push_back(alone.run());
  CHECK(losses[2] < losses[0]);
  for (const int devices : {2, 3, 4}) {
    trained several(devices);
    std::size_t most = 0, products_meanwhile = 0;
    several.step.executor().hook = [&](const gs::node& n, bool before) {
      const std::size_t now = several.backend->started - several.backend->finished;
      most = std::max(most, now);
      products_meanwhile += before && n.kind == op::einsum && now > 0;
    };
    for (const float loss : losses) CHECK(several.run() == doctest::Approx(loss).epsilon(1e-4));
    CAPTURE(devices);
    CHECK(most >= 2);
    CHECK(products_meanwhile >= 3 * 20);
    CHECK(several.backend->started == several.backend->finished);
    const gs::executor& run = several.step.executor();
    for (const gs::op_ref kind : std::initializer_list<gs::op_ref>{op::all_reduce, op::all_gather, op::reduce_scatter}) {
      CHECK(run.received(kind).calls == 3 * program::plan.count(kind));
      if (rows % devices == 0 && width % devices == 0)
        CHECK(run.received(kind).bytes == 3 * program::plan.bytes_received(kind, run.sizes()));
    }
  }
}

TEST_CASE("collectives that advance while steps run give the same bits, and an error still ends them") {
  const auto run = [](std::shared_ptr<gs::simulated> on, int steps) {
    gs::executable<program> step(gs::any_cluster(line::shape, std::move(on)), sizes);
    const std::vector<float> x = data();
    std::vector<float> losses;
    for (int i = 0; i < steps; ++i) losses.push_back(step(std::span<const float>(x), std::span<const float>(&rate, 1)).item());
    if (steps == 1) {
      step.executor().hook = [&, updates = 0](const gs::node& n, bool before) mutable {
        if (before && n.kind == op::adam && ++updates == 3) throw gs::error("the third update");
      };
      CHECK_THROWS_WITH_AS(step(std::span<const float>(x), std::span<const float>(&rate, 1)), "the third update", gs::error);
    }
    return losses;
  };
  const std::vector<int> nodes{0, 1, 0, 1};
  const gs::node_map map{nodes, gs::summation::by_node};
  const std::vector<float> losses = run(std::make_shared<gs::simulated>(std::vector{4}, map), 3);
  for (unsigned i = 0; i < 5; ++i) {
    const auto hasty = std::make_shared<hasty_exchanges>(std::vector{4}, map);
    hasty->draw.seed(i);
    CHECK(run(hasty, 3) == losses);
    CHECK(run(hasty, 1)[0] == losses[0]);
  }
}

TEST_CASE("nothing else is written where messages come from and go to while they are under way") {
  for (const int devices : {2, 3, 4}) {
    const trained t(devices);
    const gs::executor& run = t.step.executor();
    const gs::plan_view& plan = run.plan();
    const auto bytes_of = [&](std::int32_t v) {
      const auto& value = run.value(v);
      return std::span<const std::byte>(value.data[0], std::size_t(value.bytes(0)));
    };
    const auto meet = [](std::span<const std::byte> a, std::span<const std::byte> b) {
      return !a.empty() && !b.empty() && a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
    };
    const gs::list<gs::async_interval> schedule = gs::async_schedule(plan, run.sizes());
    int checked = 0;
    for (std::int32_t i = 0; i < std::int32_t(plan.steps.size()); ++i) {
      const auto [start, finish] = schedule[std::size_t(i)];
      const gs::node& moves = plan.steps[std::size_t(i)];
      for (std::int32_t j = start; j < finish; ++j) {
        const gs::node& other = plan.steps[std::size_t(j)];
        if (j == i) continue;
        for (int o = 0; o < other.outputs; ++o) {
          ++checked;
          for (int k = 0; k < moves.inputs; ++k) {
            CHECK_FALSE(meet(bytes_of(other.output(o)), bytes_of(moves.input(k))));
            CHECK_FALSE(meet(bytes_of(other.output(o)), bytes_of(moves.output(k))));
          }
        }
      }
    }
    CHECK(checked > 100);
  }
}

TEST_CASE("an error ends what is under way, and the next run starts afresh") {
  trained t(3);
  const float first = t.run();
  for (const std::size_t failing : {0u, 3u, 11u}) {
    trained other(3);
    other.backend->fails = std::string(failing, '-') + "x";
    CHECK_THROWS_WITH_AS(other.run(), ("exchange " + std::to_string(failing) + " failed").c_str(), gs::error);
    CHECK(other.backend->started == other.backend->finished);
  }
  CHECK_THROWS_WITH_AS(t.step.executor().run({}, "what was found before"), "what was found before", gs::error);
  CHECK(t.backend->started == t.backend->finished);
  CHECK(t.run() < first);
}
