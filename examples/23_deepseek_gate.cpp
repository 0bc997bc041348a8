// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The gate of DeepSeek-V3 (arXiv 2412.19437): sigmoid scores, the best expert groups of each token, and a bias in place of an auxiliary
// loss. A shared expert computes all tokens.
#include <gshard/gshard.hpp>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <tuple>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using mesh = gs::mesh<gs::axis<"expert">>;

template <gs::balance Balance>
inline constexpr gs::nn::moe_options options{.routing = {.k = 4,
                                                         .slots = {8},
                                                         .score = gs::gate_score::sigmoid,
                                                         .scale = 2.5,
                                                         .balance = Balance,
                                                         .sets = {.count = 4, .per_token = 2}},
                                             .swiglu = true,
                                             .shared_experts = 1};

template <gs::balance Balance>
inline constexpr auto training_step = [](auto& m, auto x, auto mask, auto rate) {
  const auto [y, load, overflow, demand] = gs::nn::moe<"expert">(m.scope("moe"), x, mask, options<Balance>);
  auto error = y - 2.0 * x;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, m.objective(loss), rate);
  return std::tuple{loss, gs::nn::measure_balance(demand, overflow).busiest};
};
template <gs::balance Balance>
using program = gs::program<training_step<Balance>, mesh, gs::in<"G@expert,S,M">, gs::in<"G@expert,S">, gs::in<"">>;
using biased = program<gs::balance::bias(0.003)>;
using without = program<gs::balance::off>;
// As for the layer of the paper: tokens to the experts and back, and the gradients of their results. Nothing is gathered.
static_assert(biased::plan.count(op::all_to_all) == 3);
static_assert(biased::plan.count(op::all_gather) == 0);
// All other collectives are sums over the devices, of gradients, losses and loads.
static_assert(biased::plan.count(op::all_reduce) == 6 && biased::plan.collectives() == 9);

int main() {
  constexpr int G = 4, S = 64, M = 16, E = 16, devices = 4, steps = 150, measured = 20;
  const gs::dims sizes{{'G', G}, {'S', S}, {'M', M}, {'F', 32}, {'E', E}};
  gs::executable<biased> with_bias(gs::simulate<mesh>(devices), sizes);
  gs::executable<without> without_bias(gs::simulate<mesh>(devices), sizes);
  std::vector<float> x(G * S * M);
  const std::vector<float> mask(G * S, 1.0f), rate(1, 0.001f);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(1.3f * float(i)) + (i % M < 3 ? 1.0f : 0.0f);
  double first = 0, loss = 0, busiest = 0, busiest_without = 0;
  for (int step = 0; step < steps; ++step) {
    const auto [l, b] = with_bias(x, mask, rate);
    const auto [unused, b_without] = without_bias(x, mask, rate);
    static_cast<void>(unused);
    loss = double(l.item());
    if (step == 0) first = loss;
    if (step < steps - measured) continue;
    busiest += double(b.item()) / measured;
    busiest_without += double(b_without.item()) / measured;
  }
  std::puts(loss < first / 2 ? "the loss has halved" : "the loss has not halved");
  std::printf("busiest expert over the mean: %.0f without bias, %.0f with it\n", busiest_without, busiest);
}
