// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/moe/routing/gating_kernel.hpp>

#include "../../exec/kernel/gating_reference.hpp"
#include "../../exec/kernel/support.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace {

using namespace gating_reference;

struct routed {
  std::vector<std::int32_t> slot;
  std::vector<double> weight, aux, load, overflow, demand;

  explicit routed(const ks::gating_sizes& n)
      : slot(at(n.groups * n.tokens * n.choices)),
        weight(slot.size()),
        aux(at(n.groups)),
        load(at(n.groups * n.experts)),
        overflow(at(n.groups)),
        demand(load.size(), 7) {}
};

routed route(const random_case& c, const ks::gating_rules<double>& rules = {}) {
  routed r(c.n);
  ks::top_k_gating(c.gates.data(), c.mask.data(), r.slot.data(), r.weight.data(), r.aux.data(), r.load.data(),
                  r.overflow.data(), r.demand.data(), c.n, c.random, c.key, c.group_offset, rules);
  return r;
}

/// Random rules, and the numbers that they refer to.
struct random_rules {
  std::vector<double> scores, importance;
  ks::gating_rules<double> rules;

  random_rules(const random_case& c, std::uint32_t seed) {
    std::mt19937 gen(seed + 1000);
    std::uniform_int_distribution<int> few(0, 3);
    std::normal_distribution<> normal;
    for (std::size_t i = 0; i < c.gates.size(); ++i) scores.push_back(few(gen) == 0 ? double(few(gen)) : normal(gen));
    for (std::size_t i = 0; i < c.mask.size(); ++i) importance.push_back(double(few(gen)));
    if (seed % 2 == 0) rules.scores = scores.data();
    if (seed % 3 == 0) rules.importance = importance.data();
    rules.has_threshold = seed % 5 == 0;
    rules.threshold = 0.1 + 0.2 * few(gen);
    rules.gates_as_weights = seed % 7 < 3;
  }
};

/// Compares slots, weights, auxiliary loss, load, overflow and demand of 1,000 random groups with the dense formulation.
void check_random_groups(bool any_number_of_choices, bool any_rules = false) {
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    random_case c = make_case(seed);
    if (any_number_of_choices) c.n.choices = 1 + seed % 6;
    const auto [G, S, E, C, K] = c.n;
    const random_rules other(c, seed);
    const ks::gating_rules<double> rules = any_rules ? other.rules : ks::gating_rules<double>();
    const routed r = route(c, rules);
    const result expected = algorithm1(c.gates, c.mask, c.n, c.random, c.key, c.group_offset, rules);
    std::vector<double> combine(at(G * S * E * C));
    for (std::size_t i = 0; i < r.slot.size(); ++i) {
      if (r.slot[i] >= 0)
        combine[i / at(K) * at(E * C) + at(r.slot[i])] = r.weight[i];
      else
        CHECK(r.weight[i] == 0);
    }
    CHECK(combine == expected.combine);
    CHECK(r.load == expected.load);
    CHECK(r.overflow == expected.overflow);
    CHECK(r.demand == expected.demand);
    for (std::size_t g = 0; g < at(G); ++g) CHECK(r.aux[g] == doctest::Approx(expected.aux[g]));
  }
}

}  // namespace

TEST_CASE("top2_gating: random groups against Algorithm 1 written densely") {
  check_random_groups(false);
}

TEST_CASE("top_k_gating: random groups of 1 to 6 choices against Algorithm 1 written densely") {
  check_random_groups(true);
}

TEST_CASE("top_k_gating: random groups with scores, importance, thresholds and unnormalized weights, against a dense formulation") {
  check_random_groups(true, true);
}

TEST_CASE("choose_largest: two of up to 40 experts, with ties, zeros of both signs, infinities and NaN, against a stable sort") {
  std::mt19937 gen(5);
  std::uniform_int_distribution<int> few(0, 7);
  const double inf = std::numeric_limits<double>::infinity(), values[] = {-inf, -1, -0.0, 0.0, 1, 2, inf, std::nan("")};
  const auto check = [&]<class T>(T) {
    for (int trial = 0; trial < 4000; ++trial) {
      CAPTURE(trial);
      const bool looks_for_nan = trial % 2 == 0;
      std::vector<T> gates(at(1 + trial % 40));
      for (T& g : gates) g = T(trial % 3 == 0 ? std::normal_distribution<>()(gen) : values[few(gen) % (looks_for_nan ? 8 : 7)]);
      std::vector<std::int64_t> order(gates.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return ks::detail::is_larger_or_nan(gates[at(a)], gates[at(b)]);
      });
      std::int64_t chosen[2];
      ks::detail::choose_largest(gates.data(), std::int64_t(gates.size()), 2, chosen, looks_for_nan);
      CHECK(chosen[0] == order[0]);
      CHECK(chosen[1] == (order.size() > 1 ? order[1] : -1));
    }
  };
  check(float());
  check(double());
}

TEST_CASE("top2_gating: groups do not depend on the device that holds them") {
  random_case c = make_case(7);
  c.random = true;
  const routed all = route(c);
  for (std::int64_t g = 0; g < c.n.groups; ++g) {
    random_case one = c;
    one.n.groups = 1;
    one.group_offset += g;
    one.gates.erase(one.gates.begin(), one.gates.begin() + g * c.n.tokens * c.n.experts);
    one.mask.erase(one.mask.begin(), one.mask.begin() + g * c.n.tokens);
    const routed r = route(one);
    CHECK(std::equal(r.slot.begin(), r.slot.end(), all.slot.begin() + g * c.n.tokens * 2));
    CHECK(r.aux[0] == all.aux[at(g)]);
  }
}

TEST_CASE("top_k_gating_grad: finite differences with the choices fixed") {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    random_case c = make_case(seed, false);
    c.n.choices = seed % 2 == 0 ? 2 : 1 + seed / 2 % 5;
    const random_rules other(c, seed);
    const ks::gating_rules<double> rules = seed < 100 ? ks::gating_rules<double>() : other.rules;
    const routed r = route(c, rules);
    std::mt19937 gen(seed);
    std::uniform_real_distribution<> uniform(-1, 1);
    std::vector<double> dweight(r.weight.size()), daux(r.aux.size()), dgates(c.gates.size(), 7);
    for (double& v : dweight) v = uniform(gen);
    for (double& v : daux) v = uniform(gen);
    ks::top_k_gating_grad(c.gates.data(), c.mask.data(), r.slot.data(), dweight.data(), daux.data(),
                         dgates.data(), c.n, rules);
    const auto loss = [&](const routed& v) {
      double sum = 0;
      for (std::size_t i = 0; i < dweight.size(); ++i) sum += dweight[i] * v.weight[i];
      for (std::size_t g = 0; g < daux.size(); ++g) sum += daux[g] * v.aux[g];
      return sum;
    };
    for (std::size_t i = 0; i < c.gates.size(); ++i) {
      const double h = 1e-6, before = c.gates[i];
      c.gates[i] = before + h;
      const routed up = route(c, rules);
      c.gates[i] = before - h;
      const routed down = route(c, rules);
      c.gates[i] = before;
      if (up.slot != r.slot || down.slot != r.slot) continue;  // a random choice has flipped
      CHECK(dgates[i] == doctest::Approx((loss(up) - loss(down)) / (2 * h)).epsilon(1e-6));
    }
  }
}

TEST_CASE("top_k_gating: a gate that is NaN is the largest, and makes its token's weights, aux and gradients NaN") {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    random_case c = make_case(seed);
    c.n.choices = 2 + seed % 3;
    const auto [G, S, E, C, K] = c.n;
    std::mt19937 gen(seed);
    for (std::uint32_t i = 0; i <= seed % 3; ++i) c.gates[gen() % c.gates.size()] = std::nan("");
    if (seed % 7 == 0) std::fill(c.gates.begin(), c.gates.end(), std::nan(""));
    const routed r = route(c);
    const result expected = algorithm1(c.gates, c.mask, c.n, c.random, c.key, c.group_offset);
    std::vector<double> combine(at(G * S * E * C));
    for (std::size_t i = 0; i < r.slot.size(); ++i) {
      REQUIRE(r.slot[i] < E * C);
      if (r.slot[i] >= 0) combine[i / at(K) * at(E * C) + at(r.slot[i])] = r.weight[i];
    }
    CHECK(test::same_numbers(combine, expected.combine));
    CHECK(r.load == expected.load);
    CHECK(r.overflow == expected.overflow);
    CHECK(r.demand == expected.demand);
    CHECK(test::same_numbers(r.aux, expected.aux, 1e-12));
    const std::vector<double> dweight(r.weight.size(), 0.5), daux(r.aux.size(), 0.25);
    std::vector<double> dgates(c.gates.size(), 7);
    ks::top_k_gating_grad(c.gates.data(), c.mask.data(), r.slot.data(), dweight.data(), daux.data(), dgates.data(), c.n);
    for (std::size_t token = 0; token < at(G * S); ++token) {
      const auto first = c.gates.begin() + std::ptrdiff_t(token) * E;
      const bool bad = E > 1 && c.mask[token] != 0 && std::any_of(first, first + E, [](double v) { return std::isnan(v); });
      const auto found = dgates.begin() + std::ptrdiff_t(token) * E;
      CHECK(std::any_of(found, found + E, [](double v) { return std::isnan(v); }) == bad);
    }
  }
}
