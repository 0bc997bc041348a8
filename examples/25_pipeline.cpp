// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A pipeline: eight layers in four stages, each on its own device. Microbatches pass the stages one after the other.
#include <gshard/gshard.hpp>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::extent;
using mesh = gs::mesh<gs::axis<"stage">>;

constexpr int stages = 4, microbatches = 8, rounds = 2;
constexpr gs::nn::pipeline_options schedule{.repeats = rounds, .saved = gs::remat_policy::nothing,
                                            .plan = gs::nn::pipeline_plan::loop};

// A stage, for all stages at once: S is a batch index of the einsums.
inline constexpr auto layer = [](auto y, auto w) { return y + gs::relu(gs::einsum<"SBF,SFG->SBG">(y, w)); };

// Layer r * stages + s is w[r, s]. A microbatch passes the stages twice.
inline constexpr auto pipelined = [](auto& m, auto x, auto target, auto rate) {
  const auto w = m.param("w", "R,S@stage,F,F", gs::init::fan_in("F"));
  const auto y = gs::nn::pipeline(m, schedule, layer, x, w);
  const auto loss = gs::mean((y - target) * (y - target));
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
// The same layers one after the other.
inline constexpr auto sequential = [](auto& m, auto x, auto target, auto rate) {
  const auto w = m.param("w", "RSFF", gs::init::fan_in("F"));
  auto y = x;
  for (int r = 0; r < rounds; ++r)
    for (int s = 0; s < stages; ++s)
      y = y + gs::relu(gs::einsum<"MBF,FG->MBG">(y, gs::squeeze(gs::squeeze(gs::slice(w, {{0, r, r + 1}, {1, s, s + 1}}), 0), 0)));
  const auto loss = gs::mean((y - target) * (y - target));
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
template <auto Model>
using step = gs::program<Model, mesh, gs::in<"M,B,F">, gs::in<"M,B,F">, gs::in<"">,
                         extent<'M', microbatches>, extent<'S', stages>, extent<'R', rounds>>;

// The plan has one tick of the loop, and one tick of its gradient, for any number of microbatches. A tick has one permute. The results of
// the last stage arrive in one reduction. Nothing is gathered.
static_assert(schedule.ticks(stages, microbatches) == 19);
static_assert(step<pipelined>::plan.count(op::loop_begin) == 2);
static_assert(step<pipelined>::plan.count(op::collective_permute) == 2);
static_assert(step<pipelined>::plan.count(op::all_reduce) == 1);
static_assert(step<pipelined>::plan.collectives() == 3);

template <auto Model>
std::vector<float> train(int devices, const std::vector<float>& x, const std::vector<float>& target) {
  const auto on = gs::simulate<mesh>(devices);
  gs::executable<step<Model>> run(on, {{'M', microbatches}, {'B', 2}, {'F', 16}, {'S', stages}, {'R', rounds}}, gs::parameter_store(on, 3));
  std::vector<float> losses;
  for (int i = 0; i < 20; ++i) losses.push_back(run(x, target, std::vector{3e-3f}).item());
  return losses;
}

int main() {
  std::vector<float> x(microbatches * 2 * 16), target(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(0.7f * float(i));
    target[i] = std::cos(0.3f * float(i));
  }
  const std::vector<float> one = train<sequential>(1, x, target), four = train<pipelined>(stages, x, target);
  bool alike = true;
  for (std::size_t i = 0; i < one.size(); ++i) alike = alike && std::fabs(one[i] - four[i]) < 1e-4f * one[i];
  std::printf("idle: %.1f %% of the ticks; %.1f %% if a microbatch passed once\n", 100 * schedule.bubble(stages, microbatches),
              100 * gs::nn::pipeline_options{}.bubble(stages, microbatches));
  std::printf("loss %.3f -> %.3f, %s\n", double(four.front()), double(four.back()), alike ? "as without a pipeline" : "wrong");
}
