// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/models/pipeline.hpp>
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include <cstdint>

// A pipeline of products that is trained, and counts of its plan, for plans as constants and at run time.
namespace trained_pipeline {

namespace gs = gshard;
namespace nn = gshard::nn;
namespace op = gs::op;
using gs::extent, gs::none, gs::P, gs::remat_policy, gs::symbol;

inline constexpr auto layer = [](auto y, auto w) { return gs::relu(gs::einsum<"SBF,SFG->SBG">(y, w)); };
template <nn::pipeline_options Options>
constexpr symbol passed(const auto& m, auto x) {
  if constexpr (Options.repeats == 1)
    return nn::pipeline(m, Options, layer, x, m.param("w", "SFF", P<"stage", none, none>{}, gs::init::fan_in("F")));
  else
    return nn::pipeline(m, Options, layer, x, m.param("w", "RSFF", P<none, "stage", none, none>{}, gs::init::fan_in("F")));
}
template <nn::pipeline_options Options>
inline constexpr auto train = [](auto& m, auto x, auto rate) {
  const auto y = passed<Options>(m, x);
  const auto loss = gs::mean(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};

using mesh = gs::mesh<gs::axis<"stage">, gs::axis<"data">>;
using batches = gs::in<"MBF", P<none, "data", none>>;
/// A training step.
template <int Rounds, std::int64_t Batches, remat_policy Saved = remat_policy::everything, nn::pipeline_plan Plan = nn::pipeline_plan::loop>
using program = gs::program<train<nn::pipeline_options{Rounds, Saved, Plan}>, mesh, batches, gs::in<"">, extent<'S', 4>,
                            extent<'M', Batches>, extent<'R', Rounds>>;

struct counts {
  int permutes, collectives;  // in loops, and in total
  int products;               // of the stages in the forward pass, and again for the gradient
  bool in_order;              // only sums and permutes, and in loops only permutes
};
constexpr counts count(const gs::plan_view& p) {
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

}  // namespace trained_pipeline
