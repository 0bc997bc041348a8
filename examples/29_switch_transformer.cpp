// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The layer of the Switch Transformer (arXiv 2101.03961): one expert per token, weighted by its gate, with capacity factor 1.25.
#include <gshard/gshard.hpp>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <tuple>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using mesh = gs::mesh<gs::axis<"expert">>;

constexpr int G = 4, S = 64, M = 16, E = 8;

// The weight is the gate itself. Divided by the sum of the chosen gates, it would always be 1, and the router would learn nothing from it.
inline constexpr gs::nn::moe_options options{.routing = {.k = 1, .slots = {1.25}, .norm = gs::gate_norm::off, .jitter = 0.01}};

// A dense layer, then the experts.
inline constexpr auto model = [](auto& m, auto x, auto mask) {
  const auto h = x + gs::relu(gs::einsum<"GSM,MN->GSN">(x, m.param("w", "MM", gs::init::fan_in("M"))));
  const auto [y, load, overflow, demand] = gs::nn::moe<"expert">(m.scope("switch"), h, mask, options);
  const auto balance = gs::nn::measure_balance(demand, overflow);
  return std::tuple{h + y, balance.refused, balance.busiest};
};

// The paper's auxiliary loss, 0.01 * E * sum of f_e P_e, is 0.01 * E^2 times the loss of Algorithm 1, which `moe` adds.
template <bool Balanced>
inline constexpr auto training_step = [](auto& m, auto x, auto target, auto mask, auto rate) {
  const auto [y, refused, busiest] = model(m, x, mask);
  const auto error = y - target;
  const auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, m.objective(loss, Balanced ? 0.01 * E * E : 0), rate);
  return std::tuple{loss, refused, busiest};
};
using tokens = gs::in<"G@expert,S,M">;
using mask_of_tokens = gs::in<"G@expert,S">;
using forward = gs::program<model, mesh, tokens, mask_of_tokens>;
template <bool Balanced>
using training = gs::program<training_step<Balanced>, mesh, tokens, tokens, mask_of_tokens, gs::in<"">>;

// Tokens to the experts and back, and their gradients to the experts and back.
static_assert(forward::plan.count(op::all_to_all) == 2 && forward::plan.count(op::all_gather) == 0);
static_assert(training<true>::plan.count(op::all_to_all) == 4 && training<true>::plan.count(op::all_gather) == 0);

/// The results of the last steps of a training.
struct outcome {
  double loss = 0, refused = 0, busiest = 0;
};
template <bool Balanced>
outcome train(const std::vector<float>& x, const std::vector<float>& target) {
  constexpr int steps = 150, measured = 20;
  gs::executable<training<Balanced>> step(gs::simulate<mesh>(4), {{'G', G}, {'S', S}, {'M', M}, {'F', 32}, {'E', E}});
  const std::vector<float> mask(G * S, 1.0f), rate(1, 0.003f);
  outcome mean;
  for (int i = 0; i < steps; ++i) {
    const auto [loss, refused, busiest] = step(x, target, mask, rate);
    if (i < steps - measured) continue;
    mean.loss += double(loss.item()) / measured;
    mean.refused += double(refused.item()) / measured;
    mean.busiest += double(busiest.item()) / measured;
  }
  return mean;
}

int main() {
  std::vector<float> x(G * S * M), target(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(1.3f * float(i)) + (i % M < 3 ? 1.0f : 0.0f);
    target[i] = 2 * x[i];
  }
  const outcome balanced = train<true>(x, target), unbalanced = train<false>(x, target);
  const auto says = [](const char* what, bool is_true) { std::printf("%s: %s\n", what, is_true ? "yes" : "no"); };
  std::puts("with the auxiliary loss");
  says("  the busiest expert has less than half of the load that it has without", balanced.busiest < unbalanced.busiest / 2);
  says("  less than half as many tokens are refused", balanced.refused < unbalanced.refused / 2);
  says("  the loss is smaller", balanced.loss < unbalanced.loss);
}
