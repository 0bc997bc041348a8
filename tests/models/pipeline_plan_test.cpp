// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The communication of pipelines, and the steps of their plans. static/models/pipeline.cpp has three plans as constants.
#include "trained_pipeline.hpp"

#include "../exec/planner.hpp"
#include "../static/soundness.hpp"

#include <doctest/doctest.h>

#include <cstdint>

namespace gs = gshard;
namespace nn = gshard::nn;
namespace op = gs::op;
using gs::extent, gs::none, gs::P, gs::remat_policy;
using trained_pipeline::batches, trained_pipeline::count, trained_pipeline::counts, trained_pipeline::mesh;

namespace {

template <nn::pipeline_plan Plan>
constexpr auto spread = [](auto& m, auto x) {
  return gs::annotate<P<"stage", none, none>>(trained_pipeline::passed<nn::pipeline_options{.plan = Plan}>(m, x));
};

template <int Rounds, std::int64_t Batches, remat_policy Saved = remat_policy::everything, nn::pipeline_plan Plan = nn::pipeline_plan::loop>
gs::plan_view trained() {
  return planned::plan_of<trained_pipeline::program<Rounds, Batches, Saved, Plan>>();
}
template <nn::pipeline_plan Plan>
gs::plan_view spread_plan() {
  return planned::plan_of<gs::program<spread<Plan>, mesh, batches, extent<'S', 4>, extent<'M', 8>>>();
}

/// Checks a plan with one tick. A tick has one permute, and one in the gradient. In addition, there are the sums of the results, of the
/// loss and of the weights' gradients. Devices add the gradients of all ticks before they sum them once. The plan has the stage's product,
/// and two for its gradient.
void check_one_tick(const gs::plan_view& plan, int recomputed = 0) {
  const counts n = count(plan);
  CHECK(n.permutes == 2);
  CHECK(n.collectives == 2 + 3);
  CHECK(n.products == 3 + recomputed);
  CHECK(n.in_order);
}
/// The same for a plan with all ticks. There the circular schedule sums weights' gradients in several ticks.
void check_all_ticks(const gs::plan_view& plan, int rounds, int microbatches) {
  const counts n = count(plan);
  const int ticks = int(nn::pipeline_options{rounds}.ticks(4, microbatches));
  CHECK(n.permutes == 2 * (ticks - 1));
  if (rounds == 1) CHECK(n.collectives <= 2 * (ticks - 1) + 3);
  CHECK(n.in_order);
  CHECK(soundness::is_sound(plan));
}
int rows_written(const gs::plan_view& plan) {
  int n = 0;
  for (const gs::node& s : plan.steps) n += gs::writes_row(s);
  return n;
}

}  // namespace

TEST_CASE("pipeline: the plan of a loop has one tick, with one permute, and one in the gradient") {
  check_one_tick(trained<1, 8>());
  check_one_tick(trained<1, 2>());  // fewer microbatches than stages
  check_one_tick(trained<2, 8>());
  check_one_tick(trained<3, 4>());  // as many as stages: nothing waits
  check_one_tick(trained<2, 8, remat_policy::nothing>(), 1);
}

TEST_CASE("pipeline: a loop keeps the operands of the product, the result of relu, and the output; nothing for `select`") {
  CHECK(rows_written(trained<1, 8>()) == 3);
  CHECK(rows_written(trained<1, 8, remat_policy::nothing>()) == 2);  // the state and the output
}

TEST_CASE("pipeline: the plan of a loop has as many steps for more microbatches") {
  CHECK(trained<1, 8>().steps.size() == trained<1, 500>().steps.size());
  CHECK(trained<2, 8>().steps.size() == trained<2, 500>().steps.size());
}

TEST_CASE("pipeline: with all ticks in the plan, each has one permute, and one in the gradient") {
  check_all_ticks(trained<1, 8, remat_policy::everything, nn::pipeline_plan::all_ticks>(), 1, 8);
  check_all_ticks(trained<3, 4, remat_policy::everything, nn::pipeline_plan::all_ticks>(), 3, 4);
  check_all_ticks(trained<2, 8, remat_policy::nothing, nn::pipeline_plan::all_ticks>(), 2, 8);
}

TEST_CASE("pipeline: results that are sharded over the stages arrive in one exchange") {
  const gs::plan_view loop = spread_plan<nn::pipeline_plan::loop>(), all_ticks = spread_plan<nn::pipeline_plan::all_ticks>();
  CHECK(loop.count(op::all_to_all) == 1);
  CHECK(loop.count(op::collective_permute) == 1);
  CHECK(loop.collectives() == 2);
  CHECK(all_ticks.count(op::all_to_all) == 1);
  CHECK(all_ticks.collectives() == 11);
}
