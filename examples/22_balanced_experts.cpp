// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Balance by measured demand: hot experts get replicas, and experts move between devices during training. The losses stay the same.
#include <gshard/gshard.hpp>
#include <gshard/moe.hpp>
#include <gshard/sim/run/routing_workload.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <tuple>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using mesh = gs::mesh<gs::axis<"expert">>;

// A layer whose routing is an input, so that a workload of a benchmark can set it. With `Replicas`, its experts may move.
template <bool Replicas>
inline constexpr auto training_step = [](auto& m, auto x, auto logits, auto rate) {
  auto route = gs::top_k_gating(gs::softmax(logits), {.k = 2, .slots = {8}});
  gs::symbol wi = x, wo = x;
  if constexpr (Replicas) {
    auto expert_of = gs::replicas_of_experts(m, "R", "E");
    wi = gs::replica_param(m, expert_of, "wi", "R@expert,M,F", gs::init::fan_in("M"));
    wo = gs::replica_param(m, expert_of, "wo", "R@expert,F,M", gs::init::fan_in("F"));
    route = gs::send_to_replicas(route, expert_of);
  } else {
    wi = m.param("wi", "E@expert,M,F", gs::init::fan_in("M"));
    wo = m.param("wo", "E@expert,F,M", gs::init::fan_in("F"));
  }
  auto in = gs::einsum<"GSEC,GSM->EGCM">(route.dispatch, x);
  auto out = gs::einsum<"EGCF,EFM->GECM">(gs::relu(gs::einsum<"EGCM,EMF->EGCF">(in, wi)), wo);
  auto error = gs::einsum<"GSEC,GECM->GSM">(route.combine, out) - 2.0 * x;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, loss, rate);
  return std::tuple{loss, gs::sum<"GE->E">(route.demand)};
};
template <bool Replicas>
using program = gs::program<training_step<Replicas>, mesh, gs::in<"G@expert,S,M">, gs::in<"G@expert,S,E">, gs::in<"">>;
// Gradients are summed over replicas: one more all_reduce for each of the two weights.
static_assert(program<true>::plan.count(op::all_reduce) == program<false>::plan.count(op::all_reduce) + 2);
static_assert(program<true>::plan.count(op::all_to_all) == program<false>::plan.count(op::all_to_all));

int main() {
  constexpr int G = 4, S = 64, M = 16, E = 8, R = 12, devices = 4, steps = 24;
  const gs::dims sizes{{'G', G}, {'S', S}, {'M', M}, {'F', 32}, {'E', E}, {'R', R}};
  std::vector<float> x(G * S * M);
  const std::vector<float> rate(1, 0.003f);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.7f * float(i)) * std::cos(0.03f * float(i));

  double largest = 0;
  for (const gs::workload what : {gs::workload::hot_expert_set, gs::workload::hot_rank, gs::workload::rotating_hotspot}) {
    const gs::routing_workload w{.what = what, .seed = 1, .experts = E, .ranks = devices, .sources = G, .tokens = S, .k = 2};
    gs::executable<program<false>> fixed(gs::simulate<mesh>(devices), sizes);
    gs::executable<program<true>> balanced(gs::simulate<mesh>(devices), sizes);
    gs::placed_experts experts(balanced.executor());
    const auto even = gs::expert_placement::even(E, {devices, E / devices});
    std::vector<double> sums(E, 0.0);
    double imbalance = 0, imbalance_fixed = 0;
    for (int step = 0; step < steps; ++step) {
      const std::vector<float> logits = w.logits(std::uint32_t(step / 8));
      const auto [loss, demand] = balanced(x, logits, rate);
      const auto [loss_fixed, unused] = fixed(x, logits, rate);
      largest = std::max(largest, std::fabs(double(loss.item()) / double(loss_fixed.item()) - 1));
      const std::vector<float> of_step = gs::to_global(demand);
      const std::vector<double> now(of_step.begin(), of_step.end());
      imbalance += experts.placement().imbalance(now) / steps;
      imbalance_fixed += even.imbalance(now) / steps;
      for (std::size_t e = 0; e < E; ++e) sums[e] += now[e];
      if (step % 2 == 1) {  // between two steps: weights and optimizer state move
        experts.balance(sums);
        sums.assign(E, 0.0);
      }
    }
    std::printf("%-20s busiest device over the mean: %.1f, balanced %.1f\n", std::string(name(what)).c_str(), imbalance_fixed, imbalance);
  }
  std::puts(largest < 1e-4 ? "the losses are equal, up to the order of sums" : "the losses differ");
}
