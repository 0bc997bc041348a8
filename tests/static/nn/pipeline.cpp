// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What pipelines send, which ticks they have, and what they refuse.
#include <gshard/nn/pipeline.hpp>
#include <gshard/optim/adam.hpp>
#include <gshard/plan.hpp>

#include "../soundness.hpp"
#include "../tracing.hpp"

#include <cstdint>

namespace gs = gshard;
namespace nn = gshard::nn;
using gs::builder, gs::extent, gs::fault, gs::none, gs::op, gs::P, gs::remat_policy, gs::symbol;
using tracing::fails, tracing::input;

// The share of idle ticks is (S - 1) / (R M + S - 1).
static_assert(nn::pipeline_options{}.ticks(4, 8) == 11 && nn::pipeline_options{}.bubble(4, 8) == 3.0 / 11);
static_assert(nn::pipeline_options{2}.ticks(4, 8) == 19 && nn::pipeline_options{2}.bubble(4, 8) == 3.0 / 19);
static_assert(nn::pipeline_options{}.bubble(1, 8) == 0);

namespace {

constexpr auto layer = [](auto y, auto w) { return gs::relu(gs::einsum<"SBF,SFG->SBG">(y, w)); };
template <int Rounds, remat_policy Saved>
constexpr symbol passed(const auto& m, auto x) {
  if constexpr (Rounds == 1) return nn::pipeline(m, {.saved = Saved}, layer, x, m.param("w", "SFF", P<"stage", none, none>{}, gs::init::fan_in("F")));
  else
    return nn::pipeline(m, {Rounds, Saved}, layer, x, m.param("w", "RSFF", P<none, "stage", none, none>{}, gs::init::fan_in("F")));
}
template <int Rounds, remat_policy Saved>
constexpr auto train = [](auto& m, auto x, auto rate) {
  const auto y = passed<Rounds, Saved>(m, x);
  const auto loss = gs::mean(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
constexpr auto spread = [](auto& m, auto x) { return gs::annotate<P<"stage", none, none>>(passed<1, remat_policy::everything>(m, x)); };

using mesh = gs::mesh<gs::axis<"stage">, gs::axis<"data">>;
using batches = gs::in<"MBF", P<none, "data", none>>;
template <int Rounds, std::int64_t Batches, remat_policy Saved = remat_policy::everything>
using trained = gs::program<train<Rounds, Saved>, mesh, batches, gs::in<"">, extent<'S', 4>, extent<'M', Batches>, extent<'R', Rounds>>;

/// One permute from tick to tick, as many in the gradient, and the sum of the results. With a data axis, GPipe sums the loss and the weights'
/// gradients once.
template <class Program>
constexpr bool one_permute_per_tick(int rounds, int microbatches) {
  const gs::plan_view p = Program::plan;
  int again = 0, products = 0;
  for (const gs::node& n : p.steps) {
    again += n.place.recomputed && performs(n, op::collective_permute);
    products += n.kind == op::einsum && n.inputs == 2 && n.rule.in[0].size() == 3 && !n.place.gradient && !n.place.recomputed;
  }
  const auto ticks = int(nn::pipeline_options{rounds}.ticks(4, microbatches));
  return p.count(op::collective_permute) == 2 * (ticks - 1) && p.count(op::all_gather) == 0 && p.count(op::all_to_all) == 0 && again == 0 &&
         products == ticks && (rounds > 1 || p.collectives() <= 2 * (ticks - 1) + 3) && soundness::is_sound(p);
}

}  // namespace

static_assert(one_permute_per_tick<trained<1, 8>>(1, 8));
static_assert(one_permute_per_tick<trained<1, 2>>(1, 2));  // fewer microbatches than stages
static_assert(one_permute_per_tick<trained<2, 8>>(2, 8));
static_assert(one_permute_per_tick<trained<3, 4>>(3, 4));  // as many as stages: nothing waits
static_assert(one_permute_per_tick<trained<2, 8, remat_policy::nothing>>(2, 8));

// Results that are sharded over the stages arrive in one exchange.
using spread_program = gs::program<spread, mesh, batches, extent<'S', 4>, extent<'M', 8>>;
static_assert(spread_program::plan.count(op::all_to_all) == 1 && spread_program::plan.count(op::all_reduce) == 0);
static_assert(spread_program::plan.count(op::collective_permute) == 10 && spread_program::plan.collectives() == 11);

namespace {

constexpr bool refused(std::string_view weights, gs::dims known, int rounds, fault expected = fault::pipeline_extents) {
  return fails(expected, "pipeline", [&](builder& b, auto& m) {
    b.options.known = known;
    nn::pipeline(m, {rounds}, [](symbol y, symbol) { return y; }, input(b, "MBF"), input(b, weights));
  });
}

}  // namespace

static_assert(refused("SFF", {{'S', 4}}, 1));                                 // the number of microbatches is not known
static_assert(refused("SFF", {{'M', 4}}, 1));                                 // nor that of stages
static_assert(refused("RSFF", {{'S', 4}, {'M', 3}, {'R', 2}}, 2));            // circular, with fewer microbatches than stages
static_assert(refused("RSFF", {{'S', 4}, {'M', 8}, {'R', 3}}, 2));            // weights of other rounds
static_assert(refused("SFF", {{'S', 4}, {'M', 8}}, 0));
static_assert(fails(fault::dims_differ, "pipeline", [](builder& b, auto& m) {
  b.options.known = {{'S', 4}, {'M', 8}};
  nn::pipeline(m, {}, [](symbol y, symbol) { return gs::einsum<"SBF->SFB">(y); }, input(b, "MBF"), input(b, "SFF"));
}));
