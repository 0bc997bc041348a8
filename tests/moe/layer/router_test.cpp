// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Routers compared with dense formulations, on one device and on every sharding.
#include <gshard/moe/layer/router.hpp>

#include "../../exec/run_graph.hpp"
#include "../../exec/kernel/gating_reference.hpp"

#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/trace/einsum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <vector>

namespace gs = gshard;
using gs::einsum, gs::symbol;
using gs::balance, gs::choice, gs::gate_score;
using router = gs::routing_options;
using gating_reference::at;
using run_graph::arrays, run_graph::trace;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using scope = gs::parameter_scope;

namespace {

/// Inputs x, mask. Parameters wg, and bias if there is one.
run_graph::traced routed(const router& r, const std::function<symbols(const scope&, const gs::gating_result&, symbol)>& results) {
  return trace({{"GSM"}, {"GS"}}, [=](const scope& m, given x) {
    const gs::gating_result g = gs::nn::route(m, x[0], x[1], r);
    const symbol load = gs::sum<"GE->E">(g.load);
    if (r.balance.has_bias()) gs::nn::update_bias(m, gs::sum<"GE->E">(g.demand), r.balance.rate);
    return results(m, g, load);
  });
}

double uniform(std::mt19937& gen) { return std::uniform_real_distribution<>(-2, 2)(gen); }

/// Keeps, for each token, the scores of its best sets.
void keep_best_sets(std::vector<double>& scores, std::int64_t experts, int sets, int count) {
  const std::int64_t size = experts / sets;
  for (std::size_t token = 0; token < scores.size(); token += at(experts)) {
    std::vector<double> sums;
    for (int n = 0; n < sets; ++n) {
      std::vector<double> of(scores.begin() + std::ptrdiff_t(token) + n * size, scores.begin() + std::ptrdiff_t(token) + (n + 1) * size);
      std::sort(of.begin(), of.end(), std::greater<>());
      sums.push_back(of[0] + of[1]);
    }
    std::vector<double> sorted = sums;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    for (int n = 0; n < sets; ++n)
      if (sums[at(n)] < sorted[at(count - 1)])
        std::fill_n(scores.begin() + std::ptrdiff_t(token) + n * size, size, -std::numeric_limits<double>::infinity());
  }
}

router some_router(std::uint32_t seed) {
  router r;
  r.k = 1 + int(seed % 3);
  r.slots = seed % 5 == 0 ? gs::capacity::unlimited() : gs::capacity{0.75 * r.k};
  if (seed % 6 == 1) r.slots.minimum = 4;
  if (seed % 4 == 3) r.slots.multiple = 3;
  r.score = seed % 2 ? gate_score::sigmoid : gate_score::softmax;
  r.norm = seed % 4 < 2 ? gs::gate_norm::chosen : gs::gate_norm::off;
  r.scale = seed % 3 ? 1 : 2.5;
  r.balance = seed % 7 < 4 ? balance::bias(0.25) : balance::off;
  r.sets.count = seed % 11 < 5 ? 1 : 3;
  r.sets.per_token = r.sets.count == 1 || seed % 11 == 5 ? 1 : 2;
  if (seed % 13 != 0 || r.norm != gs::gate_norm::off) return r;
  r.k = 0;
  r.choice = choice::by_experts;
  return r;
}

}  // namespace

TEST_CASE("route: scores, norms, selection bias, sets of experts and capacities in 1,000 random cases, against a dense formulation") {
  constexpr std::int64_t G = 2, S = 5, E = 6, M = 2;
  const gs::dims dims{{'G', G}, {'S', S}, {'E', E}, {'M', M}};
  for (std::uint32_t kind = 0; kind < 50; ++kind) {
    CAPTURE(kind);
    const router r = some_router(kind);
    const bool biased = r.balance.has_bias();
    const run_graph::traced t = routed(r, [](const scope&, const gs::gating_result& g, symbol load) {
      return symbols{g.combine, load, g.demand};
    });
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
      CAPTURE(seed);
      std::mt19937 gen(kind * 100 + seed);
      arrays sources = run_graph::random_sources(t, dims, seed);
      for (std::size_t i = 0; i < sources.size(); ++i)
        for (double& v : sources[i]) v = i == 1 ? gen() % 4 != 0 : uniform(gen);
      const arrays found = run_graph::run(t, run_graph::serial(t, dims), sources);

      std::vector<double> gates, scores;
      for (std::int64_t row = 0; row < G * S; ++row) {
        double sum = 0;
        for (std::int64_t e = 0; e < E; ++e) {
          double logit = 0;
          for (std::int64_t i = 0; i < M; ++i) logit += sources[0][at(row * M + i)] * sources[2][at(i * E + e)];
          gates.push_back(r.score == gate_score::softmax ? std::exp(logit) : 1 / (1 + std::exp(-logit)));
          sum += gates.back();
        }
        for (std::int64_t e = 0; e < E; ++e) {
          double& gate = gates[at(row * E + e)];
          if (r.score == gate_score::softmax) gate /= sum;
          scores.push_back(gate + (biased ? sources[3][at(e)] : 0));
        }
      }
      if (r.sets.count != 1) keep_best_sets(scores, E, r.sets.count, r.sets.per_token);
      const double factor = r.slots.factor;
      const std::int64_t minimum = r.slots.minimum, multiple = r.slots.multiple;
      const std::int64_t exact = std::isinf(factor) ? S : std::max<std::int64_t>(1, std::int64_t(std::ceil(factor * S / E)));
      const std::int64_t C = (std::max(exact, minimum) + multiple - 1) / multiple * multiple;
      gs::kernel::gating_rules<double> rules;
      rules.scores = scores.data();
      rules.gates_as_weights = r.norm == gs::gate_norm::off;
      std::vector<double> combine, load(at(E), 0), demand(at(G * E), 0);
      if (r.choice.experts_choose) {
        combine.assign(at(G * S * E * C), 0);
        for (std::int64_t g = 0; g < G; ++g)
          for (std::int64_t s = 0; s < S; ++s)
            for (std::int64_t e = 0; e < E; ++e) {
              std::int64_t before = 0;
              const auto score = [&](std::int64_t token) { return scores[at((g * S + token) * E + e)]; };
              for (std::int64_t o = 0; o < S; ++o)
                before += sources[1][at(g * S + o)] != 0 && (score(o) > score(s) || (score(o) == score(s) && o < s));
              if (sources[1][at(g * S + s)] == 0 || before >= C) continue;
              combine[at(((g * S + s) * E + e) * C + before)] = gates[at((g * S + s) * E + e)];
              load[at(e)] += 1;
              demand[at(g * E + e)] += 1;
            }
      } else {
        const gating_reference::result dense =
            gating_reference::algorithm1(gates, sources[1], {G, S, E, C, r.k}, false, {}, 0, rules);
        combine = dense.combine;
        demand = dense.demand;
        for (std::size_t i = 0; i < dense.load.size(); ++i) load[i % at(E)] += dense.load[i];
      }
      REQUIRE(found[0].size() == combine.size());
      for (std::size_t i = 0; i < combine.size(); ++i) CHECK(found[0][i] == doctest::Approx(combine[i] * r.scale).epsilon(1e-12));
      CHECK(found[1] == load);
      CHECK(found[2] == demand);
      if (!biased) continue;
      std::vector<double> wanted(at(E), 0);
      for (std::size_t i = 0; i < demand.size(); ++i) wanted[i % at(E)] += demand[i];
      double mean = 0;
      for (const double v : wanted) mean += v / double(E);
      for (std::size_t e = 0; e < at(E); ++e) {
        const double direction = wanted[e] < mean - 1e-9 ? 1 : wanted[e] > mean + 1e-9 ? -1 : 0;
        CHECK(found.back()[e] == doctest::Approx(sources[3][e] + 0.25 * direction).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("route: every sharding equals one device, with gradients, noise, losses and an updated bias") {
  const auto check = [](const router& r) {
    const auto program = [=](const scope& m, given x) {
      const gs::gating_result g = gs::nn::route(m, x[0], x[1], r);
      const symbol demand = gs::sum<"GE->E">(g.demand);
      if (r.balance.has_bias()) gs::nn::update_bias(m, demand, 0.5);
      const symbol in = einsum<"GSEC,GSM->EGCM">(g.dispatch, x[0]);
      const symbol y = einsum<"GSEC,EGCM->GSM">(g.combine, in * in);
      const symbol loss = gs::sum(y * x[2]);
      const gs::nn::balance_metrics metrics = gs::nn::measure_balance(demand, gs::sum(g.overflow));
      symbols results{y, g.load, demand, metrics.busiest, metrics.entropy, metrics.refused};
      for (const symbol& d : gs::gradients(m.objective(loss, 0.5), std::array{x[0], m.param("wg", "ME", gs::init::fan_in("M"))}))
        results.push_back(d);
      return results;
    };
    const auto mask = [](arrays& sources) {
      for (std::size_t i = 0; i < sources[1].size(); ++i) sources[1][i] = i % 3 == 1 ? 0 : 1;
    };
    run_graph::every_sharding(trace({{"GSM"}, {"GS"}, {"GSM"}}, program),
                              {.dims = {{{'G', 5}, {'S', 4}, {'E', 6}, {'M', 2}}}, .tolerance = 1e-12, .prepare = mask});
  };
  check({.k = 3,
         .slots = {2},
         .score = gate_score::sigmoid,
         .scale = 2.5,
         .balance = balance::bias(),
         .sets = {.count = 3, .per_token = 2},
         .z_loss = 0.1});
  check({.slots = {2}, .choice = choice::sampled_second, .jitter = 0.25, .gumbel = 0.5});
  check({.choice = choice::by_experts, .norm = gs::gate_norm::off});
}

TEST_CASE("route: Gumbel noise chooses experts, and sampling second ones, in proportion to their gates; evaluation uses neither") {
  constexpr std::size_t S = 4000, E = 4;
  const gs::dims dims{{'G', 1}, {'S', S}, {'E', E}, {'M', 1}};
  const std::vector<double> logits{1.5, 0.5, 0, 1};
  std::vector<double> gates;
  double sum = 0;
  for (const double v : logits) sum += std::exp(v);
  for (const double v : logits) gates.push_back(std::exp(v) / sum);
  const auto load = [&](const router& r) {
    const run_graph::traced t = routed(r, [](const scope&, const gs::gating_result&, symbol sums) { return symbols{sums}; });
    return run_graph::run(t, run_graph::serial(t, dims), {std::vector<double>(S, 1), std::vector<double>(S, 1), logits})[0];
  };
  const gs::capacity all = gs::capacity::unlimited();
  const auto check = [](const std::vector<double>& found, const std::vector<double>& shares) {
    for (std::size_t e = 0; e < E; ++e) CHECK(found[e] / double(S) == doctest::Approx(shares[e]).epsilon(0.12));
  };
  check(load({.k = 1, .slots = all, .gumbel = 1}), gates);
  const router sampled{.slots = all, .choice = choice::sampled_second};
  check(load(sampled), {1, gates[1] / (1 - gates[0]), gates[2] / (1 - gates[0]), gates[3] / (1 - gates[0])});
  for (router r : {sampled, router{.k = 2, .slots = all, .jitter = 0.9, .gumbel = 3}}) {
    r.training = false;
    CHECK(load(r) == std::vector<double>{S, 0, 0, S});
    r.evaluation_slots = gs::capacity{0.5};
    CHECK(load(r) == std::vector<double>{S / 8, 0, 0, S / 8});
  }
}

TEST_CASE("route: sigmoid gates of any finite logits have finite gradients; sampled second experts are of the token's sets") {
  const run_graph::traced t = routed({.k = 2, .score = gate_score::sigmoid, .norm = gs::gate_norm::off},
                                     [](const scope& m, const gs::gating_result& g, symbol) {
    const symbol wg = m.param("wg", "ME", gs::init::fan_in("M"));
    return symbols{gs::gradients(gs::sum(g.combine), std::array{wg})[0]};
  });
  const gs::dims one{{'G', 1}, {'S', 1}, {'E', 4}, {'M', 1}};
  const auto slope = [](double v) { return std::exp(-std::abs(v)) / std::pow(1 + std::exp(-std::abs(v)), 2); };
  for (const std::vector<double>& logits : {std::vector<double>{-800, 2, 800, -3}, {-1000, -900, -800, -2}}) {
    const std::vector<double> found = run_graph::run(t, run_graph::serial(t, one), {{1}, {1}, logits})[0];
    std::vector<double> sorted = logits;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    for (std::size_t e = 0; e < 4; ++e) CHECK(found[e] == doctest::Approx(logits[e] < sorted[1] ? 0 : slope(logits[e])));
  }
  const router one_of_two_sets{.slots = gs::capacity::unlimited(), .choice = choice::sampled_second, .sets = {.count = 2}};
  const run_graph::traced sampled =
      routed(one_of_two_sets, [](const scope&, const gs::gating_result&, symbol load) { return symbols{load}; });
  const std::vector<double> tokens(200, 1);
  const gs::dims many{{'G', 1}, {'S', 200}, {'E', 6}, {'M', 1}};
  const std::vector<double> load = run_graph::run(sampled, run_graph::serial(sampled, many), {tokens, tokens, {1, 1, 1, 2, 1, 1}})[0];
  CHECK((load[0] == 0 && load[1] == 0 && load[2] == 0 && load[3] == 200 && load[4] > 0 && load[5] > 0));
}

TEST_CASE("update_bias: the bias of experts with the mean load stays, to the last bit") {
  const run_graph::traced t = trace({{"E"}}, [](const scope& m, given x) {
    gs::nn::update_bias(m, x[0], 0.5);
    return symbols{gs::sum(x[0])};
  });
  constexpr std::size_t E = 49;  // the reciprocal of E is rounded
  std::vector<double> load(E, 7), expected(E, 0);
  load[0] = 8, load[1] = 6;
  expected[0] = -0.5, expected[1] = 0.5;
  CHECK(run_graph::run(t, run_graph::serial(t, {{'E', E}}), {load, std::vector<double>(E, 0)}).back() == expected);
}

TEST_CASE("route: the z-loss is the mean of squared logsumexp over real tokens; measures of balance") {
  const gs::dims dims{{'G', 1}, {'S', 3}, {'E', 2}, {'M', 1}};
  const run_graph::traced t = routed({.k = 1, .balance = balance::off, .z_loss = 0.5},
                                     [](const scope& m, const gs::gating_result&, symbol) { return symbols{m.auxiliary()}; });
  const arrays found = run_graph::run(t, run_graph::serial(t, dims), {{1, 2, 3}, {1, 1, 0}, {1, -1}});
  const auto z = [](double v) { return std::log(std::exp(v) + std::exp(-v)); };
  CHECK(found[0][0] == doctest::Approx(0.5 * (z(1) * z(1) + z(2) * z(2)) / 2));
  const run_graph::traced measured = trace({{"E"}, {""}}, [](const scope&, given x) {
    const gs::nn::balance_metrics b = gs::nn::measure_balance(x[0], x[1]);
    return symbols{b.busiest, b.entropy, b.refused};
  });
  const gs::dims four{{'E', 4}};
  const arrays some = run_graph::run(measured, run_graph::serial(measured, four), {{6, 2, 0, 0}, {2}});
  CHECK(some[0][0] == doctest::Approx(3));
  CHECK(some[1][0] == doctest::Approx(-0.75 * std::log(0.75) - 0.25 * std::log(0.25)));
  CHECK(some[2][0] == doctest::Approx(0.25));
  const arrays none = run_graph::run(measured, run_graph::serial(measured, four), {{0, 0, 0, 0}, {0}});
  CHECK(none[0][0] == 1);
  CHECK(none[2][0] == 0);
}
