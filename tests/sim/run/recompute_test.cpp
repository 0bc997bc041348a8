// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/run/recompute.hpp>

#include <gshard/sim/run/device_memory.hpp>

#include "plan_run/translation_model.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gs = gshard;
namespace op = gs::op;

namespace {

plan_run::translation_model small() {
  plan_run::translation_model m;
  m.layers = 6;
  m.experts = m.groups = 4;
  m.tokens = 4 * 2 * 64;
  m.sequence = 32, m.width = 16, m.hidden = 64, m.heads = 2, m.head_width = 8, m.source_words = 50, m.target_words = 40;
  return m;
}
const gs::plan_tables& planned() {
  static const gs::plan_tables plan = [] {
    gs::mesh_shape mesh;
    mesh.push_back("expert", 4);
    return plan_run::plan_of(small(), mesh);
  }();
  return plan;
}

}  // namespace

TEST_CASE("recompute: nothing runs again where everything is kept") {
  REQUIRE(!planned().problem);
  const gs::recomputation layers(planned().view());
  CHECK(layers.layers() == 6);
  const gs::step_schedule order = layers.schedule(0);
  REQUIRE(order.size() == planned().steps.size());
  for (std::size_t i = 0; i < order.size(); ++i) CHECK((order[i].step == int(i) && !order[i].recomputed));
}

TEST_CASE("recompute: every step runs once, some steps of the forward pass twice, and none before what it reads") {
  const gs::plan_view plan = planned().view();
  const gs::recomputation layers(plan);
  std::size_t before = plan.steps.size();
  for (int dropped = 1; dropped <= 6; ++dropped) {
    const gs::step_schedule order = layers.schedule(dropped);
    CHECK(order.size() > before);
    before = order.size();
    std::vector<int> runs(plan.steps.size()), made(plan.values.size());
    for (const gs::port& p : plan.inputs) made[std::size_t(p.value)] = 1;
    for (const gs::parameter& p : plan.parameters) made[std::size_t(p.value)] = 1;
    for (const gs::scheduled_step& s : order) {
      const gs::node& n = plan.steps[std::size_t(s.step)];
      CHECK(runs[std::size_t(s.step)]++ == int(s.recomputed));
      for (int i = 0; i < n.inputs; ++i) CHECK(made[std::size_t(n.input(i))] == 1);
      for (int o = 0; o < n.outputs; ++o) made[std::size_t(n.output(o))] = 1;
      if (s.recomputed) CHECK(!n.place.gradient);
    }
    for (const int r : runs) CHECK(r >= 1);
  }
}

TEST_CASE("recompute: every layer whose activations are dropped frees memory") {
  const gs::plan_view plan = planned().view();
  const gs::extents e = plan.bind(small().dims(), std::array{4});
  const gs::list<gs::async_interval> turns = gs::in_turn(plan);
  const gs::device_memory memory(plan, e, turns);
  const gs::recomputation layers(plan);
  for (int dropped = 1; dropped < 6; ++dropped) CHECK(memory.peak(layers.schedule(dropped)) < memory.peak(layers.schedule(dropped - 1)));
  CHECK(memory.peak(layers.schedule(6)) <= memory.peak(layers.schedule(5)));
}

TEST_CASE("recompute: a dry run that recomputes needs the memory of a plan that does") {
  const gs::extents e = planned().view().bind(small().dims(), std::array{4});
  for (const int dropped : {0, 2, 6}) {
    const gs::step_schedule order = gs::recomputation(planned().view()).schedule(dropped);
    gs::plan_tables p = planned();
    gs::detail::reorder(p.steps, p.values, order);
    p.lifetimes = gs::detail::lifetimes(p.values, p.steps, p.parameters, p.inputs, p.outputs);
    const gs::list<gs::async_interval> turns = gs::in_turn(planned().view()), own = gs::in_turn(p.view());
    CHECK(gs::device_memory(planned().view(), e, turns).peak(order) ==
          gs::device_memory(p.view(), e, own).peak(gs::recomputation(p.view()).schedule(0)));
  }
}

TEST_CASE("recompute: a plan without a gradient has no layers") {
  gs::plan_tables p = planned();
  while (!p.steps.empty() && p.steps.back().place.gradient) p.steps.pop_back();
  for (gs::node& n : p.steps) n.place.gradient = false;
  CHECK(gs::recomputation(p.view()).layers() == 0);
}
