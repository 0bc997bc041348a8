// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/run/device_memory.hpp>

#include <gshard/core/program/program.hpp>
#include <gshard/train/adam.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;
using kind = gs::memory_kind;

namespace {

inline constexpr auto step = [](auto& m, auto x, auto rate) {
  const auto h = gs::relu(gs::einsum<"AB,BC->AC">(x, m.param("cut", "BC", P<none, "x">{}, gs::init::fan_in("B"))));
  const auto y = gs::einsum<"AC,CD->AD">(h, m.param("whole", "CD", P<none, none>{}, gs::init::fan_in("C")));
  const auto loss = gs::mean(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using program = gs::program<step, gs::mesh<gs::axis<"x">>, gs::in<"AB", P<none, none>>, gs::in<"">>;
constexpr std::int64_t A = 6, B = 5, C = 7, D = 3;
const gs::extents sizes = program::plan.bind({{'A', A}, {'B', B}, {'C', C}, {'D', D}}, std::array{2});
const gs::step_schedule order = gs::recomputation(program::plan).schedule(0);

std::int64_t at(const gs::memory_record& r, kind k) { return r.bytes[std::size_t(k)]; }

}  // namespace

TEST_CASE("memory: the peak is that of the plan's lifetimes, plus parameters and inputs") {
  const gs::list<gs::async_interval> turns = gs::in_turn(program::plan);
  const gs::device_memory memory(program::plan, sizes, turns);
  const gs::memory_record r = memory.record(order, sizes, 0, 100);
  std::int64_t sum = 0, largest = 0;
  for (const std::int64_t b : r.bytes) sum += b;
  for (const gs::live_tensor& t : r.largest) largest += t.bytes;
  CHECK(sum == r.peak);
  CHECK(largest == r.peak);
  CHECK(r.peak == memory.peak(order));
  const gs::step_price p = gs::price(program::plan, sizes, {});
  CHECK(r.peak <= p.bytes());
  CHECK(r.peak >= p.parameters + p.peak);
}

TEST_CASE("memory: at every step there is what it reads, what it makes, and what later steps read") {
  constexpr gs::plan_view plan = program::plan;
  const gs::list<gs::async_interval> turns = gs::in_turn(plan);
  const gs::device_memory memory(plan, sizes, turns);
  const std::size_t end = plan.steps.size();
  struct use {
    std::size_t first, last;
  };
  std::map<std::int32_t, use> uses;  // by storage
  const auto used = [&](std::int32_t v, std::size_t when) {
    const auto at = uses.try_emplace(plan.lifetimes[std::size_t(v)].root, use{when, when}).first;
    at->second.last = std::max(at->second.last, when);
  };
  for (const gs::port& p : plan.inputs) used(p.value, 0);
  for (const gs::parameter& p : plan.parameters) {
    used(p.value, 0);
    used(p.value, end);
  }
  for (std::size_t i = 0; i < end; ++i) {
    for (int k = 0; k < plan.steps[i].inputs; ++k) used(plan.steps[i].input(k), i);
    for (int o = 0; o < plan.steps[i].outputs; ++o) used(plan.steps[i].output(o), i);
  }
  for (const gs::port& p : plan.outputs) used(p.value, end);
  const std::vector<std::int64_t> bytes = memory.after(order);
  REQUIRE(bytes.size() == end);
  for (std::size_t i = 0; i < end; ++i) {
    CAPTURE(i);
    const gs::node& n = plan.steps[i];
    std::int64_t expected = 0;
    for (const auto& [v, u] : uses) expected += u.first <= i && i <= u.last ? memory.bytes(v) : 0;
    for (int k = 0; k < n.inputs && n.kind == gs::op::all_reduce && n.inputs > 1; ++k) expected += memory.bytes(n.input(k));  // packed
    CHECK(bytes[i] == expected);
  }
}

TEST_CASE("memory: weights, states and gradients are told from activations") {
  const gs::list<gs::async_interval> turns = gs::in_turn(program::plan);
  const gs::device_memory memory(program::plan, sizes, turns);
  const gs::memory_record r = memory.record(order, sizes, 0, 3);
  CHECK(r.largest.size() == 3);
  CHECK(r.largest[0].bytes >= r.largest[1].bytes);
  CHECK(at(r, kind::replicated_weight) == 4 * C * D);
  CHECK(at(r, kind::sharded_weight) == 4 * B * ((C + 1) / 2));
  CHECK(at(r, kind::optimizer_state) > 0);
  CHECK(r.padding > 0);
  for (const gs::parameter& p : program::plan.parameters)
    if (p.updated >= 0) CHECK(memory.bytes(p.updated) == memory.bytes(p.value));
}

TEST_CASE("memory: where the capacity is exceeded, the overrun is of the first step that exceeds it, the record of the peak") {
  const gs::list<gs::async_interval> turns = gs::in_turn(program::plan);
  const gs::device_memory memory(program::plan, sizes, turns);
  const std::vector<std::int64_t> bytes = memory.after(order);
  const gs::memory_record r = memory.overrun(order, sizes, bytes[0], 1);
  const gs::memory_record worst = memory.record(order, sizes, bytes[0], 1);
  std::int64_t at_peak = 0;
  for (const std::int64_t b : worst.bytes) at_peak += b;
  CHECK(at_peak == worst.peak);
  CHECK(bytes[std::size_t(worst.step)] == worst.peak);
  std::int64_t sum = 0;
  for (const std::int64_t b : r.bytes) sum += b;
  CHECK(sum > bytes[0]);
  CHECK(sum <= r.peak);
  CHECK(bytes[std::size_t(r.step)] == sum);
}
