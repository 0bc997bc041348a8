// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/moe/routing/gating_kernel.hpp>

#include "../../exec/kernel/gating_reference.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace {

using namespace gating_reference;

struct routed {
  std::vector<std::int32_t> slot;
  std::vector<double> weight, aux, load, overflow, demand;
};

routed choose(const random_case& c, const double* scores = nullptr) {
  routed r{std::vector<std::int32_t>(c.gates.size(), 7), std::vector<double>(c.gates.size()), std::vector<double>(at(c.n.groups), 7),
           std::vector<double>(at(c.n.groups * c.n.experts)), std::vector<double>(at(c.n.groups)), std::vector<double>(at(c.n.groups * c.n.experts))};
  ks::expert_choice(c.gates.data(), c.mask.data(), r.slot.data(), r.weight.data(), r.aux.data(), r.load.data(), r.overflow.data(),
                    r.demand.data(), c.n, scores);
  return r;
}

}  // namespace

TEST_CASE("expert_choice: an expert takes a token if fewer than C real ones precede it, in 1,000 random cases") {
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    random_case c = make_case(seed);
    std::mt19937 gen(seed);
    std::vector<double> other(c.gates.size());
    for (double& v : other) v = std::normal_distribution<>()(gen);
    if (seed % 5 == 0) c.gates[gen() % c.gates.size()] = std::nan("");
    const double* const scores = seed % 2 ? other.data() : c.gates.data();
    const routed r = choose(c, seed % 2 ? scores : nullptr);
    const auto [G, S, E, C, K] = c.n;
    for (std::int64_t g = 0; g < G; ++g) {
      double alone = 0;
      std::vector<double> load(at(E), 0);
      for (std::int64_t s = 0; s < S; ++s) {
        bool has_expert = false;
        for (std::int64_t e = 0; e < E; ++e) {
          const auto score = [&](std::int64_t token) { return scores[(g * S + token) * E + e]; };
          std::int64_t before = 0;
          for (std::int64_t t = 0; t < S; ++t) {
            const bool same = score(t) == score(s) || (std::isnan(score(t)) && std::isnan(score(s)));
            before += c.mask[at(g * S + t)] != 0 && (score(t) > score(s) || (std::isnan(score(t)) && !same) || (same && t < s));
          }
          const bool taken = c.mask[at(g * S + s)] != 0 && before < C;
          const std::size_t i = at((g * S + s) * E + e);
          REQUIRE(r.slot[i] == (taken ? e * C + before : -1));
          CHECK((!taken ? r.weight[i] == 0 : r.weight[i] == c.gates[i] || std::isnan(c.gates[i])));
          has_expert = has_expert || taken;
          load[at(e)] += taken;
        }
        alone += !has_expert && c.mask[at(g * S + s)] != 0;
      }
      CHECK(std::equal(load.begin(), load.end(), r.load.begin() + g * E));
      CHECK(std::equal(load.begin(), load.end(), r.demand.begin() + g * E));
      CHECK(r.overflow[at(g)] == alone);
      CHECK(r.aux[at(g)] == 0);
    }
  }
}

TEST_CASE("expert_choice_grad: the derivative of each weight that is used") {
  const random_case c = make_case(3);
  const routed r = choose(c);
  std::vector<double> dweight(c.gates.size()), dgates(c.gates.size(), 7);
  for (std::size_t i = 0; i < dweight.size(); ++i) dweight[i] = double(i + 1);
  ks::expert_choice_grad(r.slot.data(), dweight.data(), dgates.data(), c.n);
  for (std::size_t i = 0; i < dgates.size(); ++i) CHECK(dgates[i] == (r.slot[i] < 0 ? 0 : dweight[i]));
}
