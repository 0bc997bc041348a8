// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Experts without slots, as in MegaBlocks (arXiv 2211.15841): no expert drops a token, for any number of choices. The same layer with
// slots, for as many rows, drops some.
#include <gshard/gshard.hpp>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <tuple>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using mesh = gs::mesh<gs::axis<"expert">>;

template <bool Dropless>
constexpr gs::nn::moe_options options() {
  constexpr double spare = 2, k = 2;  // rows or slots for twice the number of choices
  if (Dropless) return {.experts = gs::experts::dropless(4, {spare * k})};
  return {.routing = {.slots = {spare * k}}};
}
template <bool Dropless>
inline constexpr auto training_step = [](auto& m, auto x, auto mask, auto rate) {
  const gs::nn::moe_result r = gs::nn::moe<"expert">(m.scope("moe"), x, mask, options<Dropless>());
  auto error = r.y - 2.0 * x;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, m.objective(loss, 0.01), rate);
  return std::tuple{loss, r.overflow};
};
template <bool Dropless>
using program = gs::program<training_step<Dropless>, mesh, gs::in<"G@expert,S,M">, gs::in<"G@expert,S">, gs::in<"">>;
// Two exchanges forward, and one in the gradients, as with slots. The number of used rows is sent first, then only those rows.
static_assert(program<true>::plan.count(op::ragged_all_to_all) == 3 && program<false>::plan.count(op::all_to_all) == 3);
static_assert(program<true>::plan.collectives() == program<false>::plan.collectives());
// Products of rows and matrices: two forward, and one for the gradient of rows. Each matrix has a gradient.
static_assert(program<true>::plan.count(op::grouped_product) == 3 && program<true>::plan.count(op::grouped_weight_grad) == 2);
static_assert(program<true>::plan.count(op::one_hot) == 0);

template <bool Dropless>
void train(const char* name) {
  constexpr int G = 4, S = 64, M = 16, E = 16, devices = 4, steps = 50;
  gs::executable<program<Dropless>> step(gs::simulate<mesh>(devices), {{'G', G}, {'S', S}, {'M', M}, {'F', 32}, {'E', E}});
  std::vector<float> x(G * S * M);
  const std::vector<float> mask(G * S, 1.0f), rate(1, 0.003f);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(1.3f * float(i)) + (i % M < 3 ? 1.0f : 0.0f);
  double first = 0, last = 0, dropped = 0;
  for (int i = 0; i < steps; ++i) {
    const auto [loss, overflow] = step(x, mask, rate);
    (i == 0 ? first : last) = double(loss.item());
    dropped += double(overflow.item());
  }
  std::printf("%s: %s choices, the loss %s\n", name, dropped > 0 ? "drops" : "drops no", last < first ? "falls" : "does not fall");
}

int main() {
  train<false>("slots");
  train<true>("dropless");
}
