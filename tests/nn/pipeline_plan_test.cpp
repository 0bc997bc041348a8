// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What pipelines send, and which steps their plans have. static/nn/pipeline.cpp has three plans as constants.
#include <gshard/nn/pipeline.hpp>
#include <gshard/optim/adam.hpp>
#include <gshard/plan.hpp>

#include "../exec/planner.hpp"
#include "../static/soundness.hpp"

#include <doctest/doctest.h>

#include <cstdint>

namespace gs = gshard;
namespace nn = gshard::nn;
using gs::extent, gs::none, gs::op, gs::P, gs::remat_policy, gs::symbol;

namespace {

constexpr auto layer = [](auto y, auto w) { return gs::relu(gs::einsum<"SBF,SFG->SBG">(y, w)); };
template <nn::pipeline_options Options>
constexpr symbol passed(const auto& m, auto x) {
  if constexpr (Options.repeats == 1)
    return nn::pipeline(m, Options, layer, x, m.param("w", "SFF", P<"stage", none, none>{}, gs::init::fan_in("F")));
  else
    return nn::pipeline(m, Options, layer, x, m.param("w", "RSFF", P<none, "stage", none, none>{}, gs::init::fan_in("F")));
}
template <nn::pipeline_options Options>
constexpr auto train = [](auto& m, auto x, auto rate) {
  const auto y = passed<Options>(m, x);
  const auto loss = gs::mean(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
template <nn::pipeline_plan Plan>
constexpr auto spread =
    [](auto& m, auto x) { return gs::annotate<P<"stage", none, none>>(passed<nn::pipeline_options{.plan = Plan}>(m, x)); };

using mesh = gs::mesh<gs::axis<"stage">, gs::axis<"data">>;
using batches = gs::in<"MBF", P<none, "data", none>>;
template <int Rounds, std::int64_t Batches, remat_policy Saved = remat_policy::everything, nn::pipeline_plan Plan = nn::pipeline_plan::loop>
using trained_program = gs::program<train<nn::pipeline_options{Rounds, Saved, Plan}>, mesh, batches, gs::in<"">, extent<'S', 4>,
                            extent<'M', Batches>, extent<'R', Rounds>>;

template <int Rounds, std::int64_t Batches, remat_policy Saved = remat_policy::everything, nn::pipeline_plan Plan = nn::pipeline_plan::loop>
gs::plan_view trained() {
  return planned::plan_of<trained_program<Rounds, Batches, Saved, Plan>>();
}
template <nn::pipeline_plan Plan>
gs::plan_view spread_plan() {
  return planned::plan_of<gs::program<spread<Plan>, mesh, batches, extent<'S', 4>, extent<'M', 8>>>();
}

struct counts {
  int permutes, collectives;  // in loops, and in all
  int products;               // of the stages in the forward pass, and again for the gradient
  bool in_order;              // only sums and permutes, and in loops only permutes
};
counts count(const gs::plan_view& p) {
  counts n{0, p.collectives(), 0, p.count(op::all_gather) == 0 && p.count(op::all_to_all) == 0};
  int depth = 0;
  for (const gs::node& s : p.steps) {
    depth += s.kind == op::loop_begin ? 1 : s.kind == op::loop_end ? -1 : 0;
    n.permutes += performs(s, op::collective_permute);
    if (depth > 0 && gs::traits(s.kind).collective && !performs(s, op::collective_permute)) n.in_order = false;
    n.products += s.kind == op::einsum && s.inputs == 2 && s.rule.in[0].size() == 3 && s.rule.in[1].size() == 3;
  }
  return n;
}

/// A tick has one permute, and one in the gradient. Besides: the sums of the results, of the loss and of the weights' gradients. Devices
/// add the gradients of all ticks before they sum them once. The plan has the stage's product, and two for its gradient.
void check_one_tick(const gs::plan_view& plan, int recomputed = 0) {
  const counts n = count(plan);
  CHECK(n.permutes == 2);
  CHECK(n.collectives == 2 + 3);
  CHECK(n.products == 3 + recomputed);
  CHECK(n.in_order);
}
/// The same with all ticks in the plan. There the circular schedule sums weights' gradients in several ticks.
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
