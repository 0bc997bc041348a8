// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every policy of a router and of the gating verbs, compared with a dense formulation, with the same random numbers, in 1,000 random
// groups.
#include <gshard/moe/layer/router.hpp>

#include "../exec/run_graph.hpp"
#include "../exec/kernel/gating_reference.hpp"

#include <gshard/core/base/random.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/ops/random/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <vector>

namespace gs = gshard;
using gating_reference::at;
using gs::balance, gs::choice, gs::gate_norm, gs::gate_score, gs::second_expert, gs::symbol;
using run_graph::array, run_graph::arrays, run_graph::traced;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using scope = gs::parameter_scope;

namespace {

constexpr int kinds = 20, runs = 5;  // of G groups each
constexpr std::int64_t G = 10, M = 2;

/// A router. The gating verbs use only options of gates.
struct policy {
  gs::routing_options options{};
  bool has_importance = false, has_scores = false, has_mask = true;
};

/// The sizes and inputs of a run.
struct numbers {
  std::int64_t S, E;
  array x, mask, importance, scores, wg, bias;
  gs::run_context context;

  gs::dims dims() const { return {{'G', G}, {'S', S}, {'E', E}, {'M', M}}; }
};

numbers some_numbers(int kind, int run) {
  std::mt19937 gen(std::uint32_t(kind * 100 + run));
  numbers n{3 + std::int64_t(gen() % 8), 3 + std::int64_t(gen() % 5), {}, {}, {}, {}, {}, {}, {.seed = gen(), .step = std::uint32_t(kind)}};
  const auto fill = [&](array& to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to.push_back(std::uniform_real_distribution<>(-2, 2)(gen));
  };
  fill(n.x, G * n.S * M);
  fill(n.scores, G * n.S * n.E);
  fill(n.wg, M * n.E);
  fill(n.bias, n.E);
  for (std::int64_t i = 0; i < G * n.S; ++i) {
    n.mask.push_back(gen() % 4 != 0);
    n.importance.push_back(double(gen() % 4));  // equal ones keep their order
  }
  return n;
}

/// The keys of a program's random numbers: of its random tensors in order, and of its gating.
struct keys {
  std::vector<std::uint32_t> tensors;
  std::uint32_t gating = 0;
  std::size_t used = 0;

  explicit keys(const traced& t) {
    for (const gs::node& n : t.graph.nodes) {
      if (n.kind == gs::op::random) tensors.push_back(std::uint32_t(n.attr.key));
      if (n.kind == gs::op::top_k_gating) gating = std::uint32_t(n.attr.key);
    }
  }
  /// The next random tensor.
  array uniform(const numbers& n, std::size_t count) {
    REQUIRE(used < tensors.size());
    const gs::random_key key{n.context.seed, n.context.step, tensors[used++]};
    array u;
    for (std::size_t i = 0; i < count; ++i) u.push_back(double(gs::uniform01(key, i)));
    return u;
  }
};
array gumbel(array u) {
  for (double& v : u) v = -std::log(-std::log(v));
  return u;
}

struct routed {
  array combine, dispatch, load, demand, overflow;
  double aux = 0;
};

/// The weights [E,C] of each token, divided by their sum.
void divide_by_sum(array& combine, std::size_t per_token) {
  for (std::size_t token = 0; token < combine.size(); token += per_token) {
    double sum = 0;
    for (std::size_t i = 0; i < per_token; ++i) sum += combine[token + i];
    for (std::size_t i = 0; i < per_token && sum != 0; ++i) combine[token + i] /= sum;
  }
}

/// Every expert takes the C real tokens of a group with the largest scores.
routed choose_tokens(const array& gates, const array& scores, const array& mask, std::int64_t S, std::int64_t E, std::int64_t C) {
  routed r{array(at(G * S * E * C)), {}, array(at(G * E)), {}, array(at(G)), 0};
  for (std::int64_t g = 0; g < G; ++g)
    for (std::int64_t s = 0; s < S; ++s) {
      const auto score = [&](std::int64_t token, std::int64_t e) { return scores[at((g * S + token) * E + e)]; };
      bool is_taken = false;
      for (std::int64_t e = 0; e < E && mask[at(g * S + s)] != 0; ++e) {
        std::int64_t before = 0;
        for (std::int64_t o = 0; o < S; ++o) before += mask[at(g * S + o)] != 0 && score(o, e) > score(s, e);
        if (before >= C) continue;
        r.combine[at(((g * S + s) * E + e) * C + before)] = gates[at((g * S + s) * E + e)];
        r.load[at(g * E + e)] += 1;
        is_taken = true;
      }
      r.overflow[at(g)] += mask[at(g * S + s)] != 0 && !is_taken;
    }
  r.demand = r.load;
  return r;
}

/// The gating of gates by scores.
routed gate(const array& gates, array scores, const policy& p, const numbers& n, keys& random) {
  const gs::capacity& places = p.options.slots;
  const int k = p.options.k;
  const gate_norm norm = p.options.norm;
  const bool by_experts = p.options.choice.experts_choose;
  const double factor = places.factor == 0 ? double(k) : places.factor;
  const std::int64_t exact = std::isinf(factor) ? n.S : std::int64_t(std::ceil(factor * double(n.S) / double(n.E) - 1e-9));
  const std::int64_t least = std::max({std::int64_t(1), exact, std::int64_t(places.minimum)});
  const std::int64_t C = (least + places.multiple - 1) / places.multiple * places.multiple;
  const array mask = p.has_mask ? n.mask : array(n.mask.size(), 1);
  if (!by_experts && k > 1 && p.options.choice.second == second_expert::sampled) {
    const array noise = gumbel(random.uniform(n, gates.size()));
    for (std::size_t row = 0; row < scores.size(); row += at(n.E)) {
      const auto begin = scores.begin() + std::ptrdiff_t(row);
      const std::size_t first = row + std::size_t(std::max_element(begin, begin + n.E) - begin);
      for (std::size_t i = row; i < row + at(n.E); ++i) scores[i] = std::log(gates[i]) + noise[i];
      scores[first] = std::numeric_limits<double>::infinity();
    }
  }
  routed r;
  if (by_experts) {
    r = choose_tokens(gates, scores, mask, n.S, n.E, C);
  } else {
    gs::kernel::gating_rules<double> rules;
    rules.scores = scores.data();
    rules.importance = p.has_importance ? n.importance.data() : nullptr;
    rules.has_threshold = p.options.choice.second == second_expert::above_threshold;
    rules.threshold = p.options.choice.threshold;
    rules.gates_as_weights = norm != gate_norm::chosen;
    const gs::random_key key{n.context.seed, n.context.step, random.gating};
    const gating_reference::result dense = gating_reference::algorithm1(
        gates, mask, {G, n.S, n.E, C, k}, p.options.choice.second == second_expert::random, key, 0, rules);
    r = {dense.combine, {}, dense.load, dense.demand, dense.overflow, 0};
    for (const double aux : dense.aux) r.aux += aux / double(G);
  }
  for (const double weight : r.combine) r.dispatch.push_back(weight != 0);
  if (norm == gate_norm::kept || (by_experts && norm == gate_norm::chosen)) divide_by_sum(r.combine, at(n.E * C));
  for (double& weight : r.combine) weight *= p.options.scale;
  return r;
}

/// nn::route: its logits, gates and scores, then the gating.
routed route(policy p, const numbers& n, keys& random) {
  array x = n.x;
  const bool noisy = p.options.training;
  if (noisy && p.options.jitter > 0) {
    const array u = random.uniform(n, x.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] *= 1 + p.options.jitter * (2 * u[i] - 1);
  }
  array logits(at(G * n.S * n.E));
  for (std::size_t i = 0; i < logits.size(); ++i)
    for (std::size_t j = 0; j < at(M); ++j) logits[i] += x[i / at(n.E) * at(M) + j] * n.wg[j * at(n.E) + i % at(n.E)];
  const auto score = [&](const array& of) {
    array y;
    for (std::size_t i = 0; i < of.size(); ++i) {
      double sum = 0;
      for (std::size_t e = i / at(n.E) * at(n.E), end = e + at(n.E); e < end; ++e) sum += std::exp(of[e]);
      y.push_back(p.options.score == gate_score::softmax ? std::exp(of[i]) / sum : 1 / (1 + std::exp(-of[i])));
    }
    return y;
  };
  const array gates = score(logits);
  array scores = gates;
  if (noisy && p.options.gumbel > 0) {
    const array noise = gumbel(random.uniform(n, logits.size()));
    for (std::size_t i = 0; i < logits.size(); ++i) logits[i] += p.options.gumbel * noise[i];
    scores = score(logits);
  }
  if (p.options.balance.has_bias())
    for (std::size_t i = 0; i < scores.size(); ++i) scores[i] += n.bias[i % at(n.E)];
  if (!noisy) {
    if (p.options.evaluation_slots.factor > 0) p.options.slots = p.options.evaluation_slots;
    if (p.options.choice.second != second_expert::above_threshold) p.options.choice.second = second_expert::always;
  }
  return gate(gates, scores, p, n, random);
}

void check_equal(const arrays& found, const routed& expected) {
  const auto difference = [](const array& a, const array& b) {
    double most = a.size() == b.size() ? 0 : 1;
    for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
    return most;
  };
  CHECK(difference(found[0], expected.combine) < 1e-12);
  CHECK(found[1] == expected.dispatch);
  CHECK(found[2] == expected.load);
  CHECK(found[3] == expected.demand);
  CHECK(found[4] == expected.overflow);
  CHECK(std::abs(found[5][0] - expected.aux) < 1e-12);
}
symbols results_of(const gs::gating_result& r) { return {r.combine, r.dispatch, r.load, r.demand, r.overflow, r.aux}; }

/// Runs `program` for the policies of all kinds, and compares it with `dense`.
void check_policy(const std::function<policy(int)>& make, const std::function<symbols(const policy&, const scope&, given)>& program,
                  const std::function<routed(const policy&, const numbers&, keys&)>& dense) {
  for (int kind = 0; kind < kinds; ++kind) {
    CAPTURE(kind);
    const policy p = make(kind);
    const traced t = run_graph::trace({{"GSM"}, {"GS"}, {"GS"}, {"GSE"}, {"GSE"}},
                                      [&](const scope& m, given x) { return program(p, m, x); });
    for (int run = 0; run < runs; ++run) {
      CAPTURE(run);
      const numbers n = some_numbers(kind, run);
      arrays sources{n.x, n.mask, n.importance, n.scores, n.scores};
      for (double& v : sources[4]) v = std::exp(-v);  // gates for the verbs, in another order than the scores
      if (t.sources() > 5) sources.push_back(n.wg);
      if (t.sources() > 6) sources.push_back(n.bias);
      run_graph::setting s = run_graph::serial(t, n.dims());
      s.context = n.context;
      keys random(t);
      check_equal(run_graph::run(t, s, sources), dense(p, n, random));
      CHECK(random.used == random.tensors.size());
    }
  }
}

/// The experts per token, slots, scale and norm of a kind.
policy some_policy(int kind) {
  policy p;
  p.options.k = 2 + kind % 2;
  p.options.slots = kind % 5 == 0 ? gs::capacity::unlimited() : gs::capacity{0.6 * p.options.k};
  if (kind % 6 == 1) p.options.slots.multiple = 3;
  if (kind % 7 == 2) p.options.slots.minimum = 4;
  p.options.scale = kind % 3 ? 1 : 2.5;
  p.options.norm = kind % 4 == 0 ? gate_norm::off : kind % 4 == 1 ? gate_norm::kept : gate_norm::chosen;
  p.options.score = kind % 8 < 3 ? gate_score::sigmoid : gate_score::softmax;
  p.options.balance = kind % 3 == 1 ? balance::bias() : kind % 3 == 2 ? balance::loss : balance::off;
  return p;
}
using change = std::function<void(policy&, int)>;

void check_route(const change& with) {
  check_policy(
      [&](int kind) {
        policy p = some_policy(kind);
        with(p, kind);
        return p;
      },
      [](const policy& p, const scope& m, given x) {
        gs::routing_options o = p.options;
        if (p.has_importance) o.importance = x[2];
        return results_of(gs::nn::route(m, x[0], x[1], o));
      },
      route);
}

/// The verbs with gates, with and without mask and scores, so that operands have different positions.
void check_verbs(const change& with) {
  check_policy(
      [&](int kind) {
        policy p = some_policy(kind);
        p.has_mask = kind % 2 == 0;
        p.has_scores = kind / 2 % 2 == 0;
        with(p, kind);
        return p;
      },
      [](const policy& p, const scope&, given x) {
        gs::routing_options o = p.options;
        o.score = gate_score::softmax;
        o.balance = balance::loss;
        if (p.has_importance) o.importance = x[2];
        if (p.has_scores) o.scores = x[3];
        return results_of(p.has_mask ? gs::top_k_gating(x[4], x[1], o) : gs::top_k_gating(x[4], o));
      },
      [](const policy& p, const numbers& n, keys& random) {
        array gates;
        for (const double v : n.scores) gates.push_back(std::exp(-v));
        return gate(gates, p.has_scores ? n.scores : gates, p, n, random);
      });
}

void check_both(const change& with) {
  check_route(with);
  check_verbs(with);
}

}  // namespace

TEST_CASE("route: jitter multiplies inputs by 1 - jitter to 1 + jitter, and evaluation has none") {
  check_route([](policy& p, int kind) {
    p.options.jitter = kind % 2 ? 0.01 : 0.4;
    p.options.training = kind % 9 != 8;
  });
}

TEST_CASE("route: Gumbel noise is added to the logits of the choice, and not to those of the weights") {
  check_route([](policy& p, int kind) {
    p.options.gumbel = 0.25 * (1 + kind % 3);
    p.options.training = kind % 9 != 8;
  });
}

TEST_CASE("gating: sampled second experts are those with the largest sum of log gate and Gumbel noise") {
  check_both([](policy& p, int) {
    p.options.k = 2;
    p.options.choice = choice::sampled_second;
  });
}

TEST_CASE("gating: a second expert is used if its weight exceeds the threshold, or the threshold times a random number") {
  for (const bool random : {true, false})
    check_both([=](policy& p, int kind) {
      const double threshold = 0.15 + 0.1 * (kind % 4);
      p.options.k = 2;
      p.options.choice = random ? choice::random_second(threshold) : choice::second_above(threshold);
    });
}

TEST_CASE("gating: tokens take slots in the order of their importance") {
  check_both([](policy& p, int) { p.has_importance = true; });
}

TEST_CASE("gating: every norm of the weights") {
  for (const gate_norm norm : {gate_norm::chosen, gate_norm::kept, gate_norm::off}) {
    CAPTURE(int(norm));
    check_both([=](policy& p, int) { p.options.norm = norm; });
  }
}

TEST_CASE("gating: experts that choose their tokens, with every norm of the weights") {
  for (const gate_norm norm : {gate_norm::chosen, gate_norm::kept, gate_norm::off}) {
    CAPTURE(int(norm));
    check_both([=](policy& p, int) {
      p.options.choice = choice::by_experts;
      p.options.balance = balance::off;
      p.options.k = 0;
      p.options.norm = norm;
    });
  }
}

TEST_CASE("route: all policies at once, and in evaluation") {
  check_route([](policy& p, int kind) {
    p.options.jitter = 0.3;
    p.options.gumbel = 0.5;
    p.options.choice = kind % 3 == 0 ? choice::sampled_second : kind % 3 == 1 ? choice::random_second(0.3) : choice::second_above(0.3);
    p.options.k = 2;
    p.has_importance = true;
    p.options.training = kind % 2 == 0;
    if (kind % 4 == 1) p.options.evaluation_slots = gs::capacity{1};
  });
}
