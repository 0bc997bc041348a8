// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/moe/routing/gating_kernel.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

// Algorithm 1 of the paper with dense tensors, line by line; for any number of choices, and with other rules.
namespace gating_reference {

namespace ks = gshard::kernel;

inline std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

struct result {
  std::vector<double> combine;  // [G,S,E,C]
  std::vector<double> aux, load, overflow, demand;
};

inline result algorithm1(const std::vector<double>& gates, const std::vector<double>& mask,
                         const ks::gating_sizes& n, bool random, gshard::random_key key,
                         std::int64_t group_offset, const ks::gating_rules<double>& rules = {}) {
  const auto [G, S, E, C, K] = n;
  result r;
  r.combine.assign(at(G * S * E * C), 0);
  r.load.assign(at(G * E), 0);
  r.demand.assign(at(G * E), 0);
  for (std::int64_t g = 0; g < G; ++g) {
    std::vector<std::int64_t> c(at(E), 0);
    std::vector<double> mean(at(E), 0);
    double real = 0, refused = 0;
    for (std::int64_t s = 0; s < S; ++s)
      if (mask[at(g * S + s)] != 0) ++real;
    real = std::max(real, 1.0);
    const auto gate = [&](std::int64_t s, std::int64_t e) { return gates[at((g * S + s) * E + e)]; };
    const auto score = [&](std::int64_t s, std::int64_t e) { return rules.scores ? rules.scores[(g * S + s) * E + e] : gate(s, e); };
    std::vector<std::int64_t> order(at(S));
    std::iota(order.begin(), order.end(), std::int64_t(0));
    if (rules.importance)
      std::stable_sort(order.begin(), order.end(),
                       [&](std::int64_t a, std::int64_t b) { return rules.importance[g * S + a] > rules.importance[g * S + b]; });
    // The experts of a token, the best first; -1 if there are no more.
    const auto best = [&](std::int64_t s) {
      std::vector<std::int64_t> chosen;
      for (std::int64_t k = 0; k < K; ++k) {
        std::int64_t found = -1;
        for (std::int64_t e = 0; e < E; ++e)
          if (std::find(chosen.begin(), chosen.end(), e) == chosen.end() &&
              (found < 0 || score(s, e) > score(s, found) || (std::isnan(score(s, e)) && !std::isnan(score(s, found)))))
            found = e;
        chosen.push_back(found);
      }
      return chosen;
    };
    for (int pass = 1; pass <= K; ++pass) {
      for (const std::int64_t s : order) {
        if (mask[at(g * S + s)] == 0) continue;
        const std::vector<std::int64_t> chosen = best(s);
        double sum = 0;
        for (const std::int64_t e : chosen) sum += e < 0 ? 0 : gate(s, e);
        if (pass == 1)
          for (std::int64_t e = 0; e < E; ++e) mean[at(e)] += gate(s, e) / real;
        const std::int64_t e = chosen[at(pass - 1)];
        if (e < 0) continue;
        const double weight = rules.gates_as_weights ? gate(s, e) : gate(s, e) / sum;
        const double least = rules.has_threshold ? rules.threshold
                             : !random           ? -1
                                                 : rules.threshold * static_cast<double>(gshard::uniform01(
                                                                         key, static_cast<std::uint64_t>((group_offset + g) * S + s)));
        const bool wanted = pass != 2 || std::isnan(weight) || weight > least;
        r.demand[at(g * E + e)] += wanted;
        if (wanted && c[at(e)] < C) {
          r.combine[at(((g * S + s) * E + e) * C + c[at(e)])] = weight;
          r.load[at(g * E + e)] += 1;
        } else if (wanted) {
          refused += 1;
        }
        c[at(e)] += 1;
      }
      if (pass == 1) {
        double aux = 0;
        for (std::int64_t e = 0; e < E; ++e) aux += static_cast<double>(c[at(e)]) / real * mean[at(e)];
        r.aux.push_back(aux / static_cast<double>(E));
      }
    }
    r.overflow.push_back(refused);
  }
  return r;
}

struct random_case {
  ks::gating_sizes n;
  std::vector<double> gates, mask;
  bool random;
  gshard::random_key key;
  std::int64_t group_offset;
};

inline random_case make_case(std::uint32_t seed, bool may_tie = true) {
  std::mt19937 gen(seed);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(gen);
  };
  random_case c;
  c.n = {pick(1, 3), pick(1, 12), pick(1, 6), pick(1, 5)};
  c.random = pick(0, 1) == 0;
  c.key = {gen(), 3, 4};
  c.group_offset = pick(0, 5);
  const bool ties = may_tie && pick(0, 3) == 0;
  for (std::int64_t row = 0; row < c.n.groups * c.n.tokens; ++row) {
    double sum = 0;
    const auto first = c.gates.size();
    for (std::int64_t e = 0; e < c.n.experts; ++e) {
      c.gates.push_back(std::exp(ties ? static_cast<double>(pick(0, 1)) : std::normal_distribution<>()(gen)));
      sum += c.gates.back();
    }
    for (std::size_t i = first; i < c.gates.size(); ++i) c.gates[i] /= sum;
    c.mask.push_back(pick(0, 4) == 0 ? 0 : 1);
  }
  return c;
}

}  // namespace gating_reference
