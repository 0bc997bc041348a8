// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Expert choice (arXiv 2202.09368): every expert chooses its tokens. All have equal loads, and a token may have any number of experts.
#include <gshard/gshard.hpp>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <tuple>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using mesh = gs::mesh<gs::axis<"expert">>;

inline constexpr auto training_step = [](auto& m, auto x, auto mask, auto rate) {
  const gs::nn::moe_options options{.routing = {.slots = {2}, .choice = gs::choice::by_experts, .norm = gs::gate_norm::off}};
  const gs::nn::moe_result r = gs::nn::moe<"expert">(m.scope("moe"), x, mask, options);
  auto error = r.y - 2.0 * x;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, loss, rate);
  return std::tuple{loss, r.load};
};
using program = gs::program<training_step, mesh, gs::in<"G@expert,S,M">, gs::in<"G@expert,S">, gs::in<"">>;
// As with token choice: two exchanges forward and one in the gradients, and no dense one-hot tensor.
static_assert(program::plan.count(op::all_to_all) == 3 && program::plan.count(op::all_gather) == 0);
static_assert(program::plan.count(op::one_hot) == 0);

int main() {
  constexpr int G = 4, S = 64, M = 16, E = 8, devices = 4, steps = 100;
  gs::executable<program> train(gs::simulate<mesh>(devices), {{'G', G}, {'S', S}, {'M', M}, {'F', 32}, {'E', E}});
  std::vector<float> x(G * S * M);
  const std::vector<float> mask(G * S, 1.0f), rate(1, 0.003f);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(1.3f * float(i)) + (i % M < 3 ? 1.0f : 0.0f);
  double first = 0, last = 0;
  bool equal = true;
  for (int step = 0; step < steps; ++step) {
    const auto [loss, load] = train(x, mask, rate);
    (step == 0 ? first : last) = double(loss.item());
    for (const float tokens : gs::to_global(load)) equal = equal && tokens == float(G * (2 * S / E));
  }
  std::puts(equal ? "every expert took 64 tokens in every step" : "loads differ");
  std::puts(last < first ? "the loss falls" : "the loss does not fall");
}
