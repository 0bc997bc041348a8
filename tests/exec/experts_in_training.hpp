// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A training step of a mixture of experts, with and without replicas, and its inputs.

#include <gshard/exec/program/executable.hpp>
#include <gshard/exec/program/parameter_access.hpp>
#include <gshard/moe/placement/placed_experts.hpp>
#include <gshard/moe/layer/moe.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/train/adam.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace experts_in_training {

namespace gs = gshard;
using gs::in, gs::none, gs::P;

using expert_mesh = gs::mesh<gs::axis<"data">, gs::axis<"expert">>;
/// ShardedState: the optimizer's state is sharded over `data`, in a dim other than that of the experts.
template <bool Replicas, bool ShardedState = false>
inline constexpr auto layer_step = [](auto& m, auto x, auto mask, auto rate) {
  const gs::nn::moe_result r =
      gs::nn::moe<"expert">(m.scope("moe"), x, mask,
                            {.routing = {.slots = {8}}, .experts = Replicas ? gs::experts::with_replicas({12}) : gs::experts::in_slots()});
  auto error = r.y - 3.0 * x;
  auto loss = gs::mean(error * error);
  if constexpr (ShardedState) gs::adam{.shard_state_over = "data"}.minimize(m, m.objective(loss, 0.1), rate);
  else gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
  return std::tuple{loss, r.demand, r.overflow};
};
using by_both = P<gs::axes<"data", "expert">, none, none>;
template <bool Replicas, bool ShardedState = false>
using layer_program = gs::program<layer_step<Replicas, ShardedState>, expert_mesh, in<"GSM", by_both, double>,
                                  in<"GS", P<gs::axes<"data", "expert">, none>, double>, in<"", void, double>, gs::element<double>>;

inline constexpr std::size_t G = 4, S = 16, E = 8, M = 8, F = 12, R = 12;
inline const gs::dims sizes{{'G', G}, {'S', S}, {'E', E}, {'M', M}, {'F', F}, {'R', R}};

/// Tokens that prefer a few experts.
inline std::vector<double> tokens() {
  std::vector<double> x(G * S * M);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(2.3 * double(i)) + (i % M == 0 ? 1 : 0);
  return x;
}
inline std::vector<double> mask_of_tokens() {
  std::vector<double> mask(G * S, 1.0);
  for (std::size_t i = 0; i < mask.size(); i += 7) mask[i] = 0;
  return mask;
}

/// Returns the losses of a training. after_step(step, run, demand) is called between steps.
template <bool Replicas, bool ShardedState = false, class Mesh, class AfterStep>
std::vector<double> train(const gs::cluster<Mesh>& on, gs::parameter_store store, int steps, AfterStep after_step) {
  gs::executable<layer_program<Replicas, ShardedState>> run(on, sizes, store);
  run.check_replicas_every = 1;
  std::vector<double> losses;
  for (int step = 1; step <= steps; ++step) {
    const auto [loss, demand, overflow] = run(tokens(), mask_of_tokens(), std::vector{0.01});
    losses.push_back(loss.item());
    if (overflow.item() != 0) losses.push_back(-1);  // the test must not lose a choice
    after_step(step, run, gs::to_global(demand));
  }
  return losses;
}

/// The rows by expert. All replicas of an expert must be equal.
inline std::vector<std::vector<double>> rows_of_experts(const gs::parameter_store& store, const std::string& name,
                                                        const std::vector<int>& expert) {
  const std::vector<double> all = gs::to_global<double>(store, name);
  const std::size_t width = all.size() / expert.size();
  std::vector<std::vector<double>> rows(E);
  for (std::size_t r = 0; r < expert.size(); ++r) {
    const std::vector<double> row(all.begin() + std::ptrdiff_t(r * width), all.begin() + std::ptrdiff_t((r + 1) * width));
    std::vector<double>& known = rows[std::size_t(expert[r])];
    if (known.empty()) known = row;
    CHECK(known == row);  // bit by bit
  }
  return rows;
}

}  // namespace experts_in_training
