// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Schedules of plans that are computed when the test runs. static/core/schedule/async_schedule.cpp has others as constants.
#include <gshard/core/schedule/async_schedule.hpp>

#include <gshard/plan.hpp>

#include "../../exec/planner.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gs = gshard;
namespace op = gs::op;
using gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"data", 4>>;

/// A program that adds to its weights, and then reads the old ones. They are sharded, and gathered for the read.
inline constexpr auto old_weights = [](auto& m, auto x) {
  const auto w = m.param("w", "MN", P<"data", none>{}, gs::init::constant(1));
  const auto whole = gs::annotate<P<none, none>>(w);
  m.update(w, w + x);
  return gs::relu(whole);
};
using program = gs::program<old_weights, mesh, gs::in<"MN", P<"data", none>>>;

}  // namespace

TEST_CASE("async_schedule: a collective is complete before a step writes over its operand, whoever reads its result") {
  const gs::plan_view plan = planned::plan_of<program>();
  constexpr std::array<int, 1> devices{4};
  const gs::extents e = plan.bind({{'M', 64}, {'N', 64}}, gs::list_view<int>(devices.data(), devices.size()));
  const gs::list<gs::async_interval> schedule = gs::async_schedule(plan, e);
  const auto storage_of = [&](std::int32_t v) { return plan.lifetimes[std::size_t(v)].root; };
  std::size_t gather = 0, addition = 0, reader = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const gs::node& n = plan.steps[i];
    if (n.kind == op::all_gather) gather = i;
    if (n.kind == op::map) (n.inputs == 2 ? addition : reader) = i;
  }
  REQUIRE(gs::detail::can_overlap(plan, plan.steps[gather], e));
  REQUIRE(storage_of(plan.steps[addition].output()) == storage_of(plan.steps[gather].input(0)));
  REQUIRE(storage_of(plan.steps[reader].input(0)) == storage_of(plan.steps[gather].output()));
  REQUIRE(gather < addition);
  REQUIRE(addition < reader);
  CHECK(schedule[gather].finish <= std::int32_t(addition));
}
