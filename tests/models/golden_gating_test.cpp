// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Known answers of the gating of eight tokens among four experts, for the kernel and for every verb that gates. They were computed
// separately, by Algorithm 1 of arXiv 2006.16668.
#include <gshard/moe/layer/router.hpp>

#include "../exec/run_graph.hpp"

#include <gshard/moe/routing/gating.hpp>
#include <gshard/moe/routing/gating_kernel.hpp>
#include <gshard/ops/rows/softmax_kernel.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <vector>

namespace gs = gshard;
using gs::gate_norm, gs::symbol, gs::balance;
using run_graph::array, run_graph::arrays;
using symbols = gs::list<symbol>;
using scope = gs::parameter_scope;

namespace {

constexpr std::size_t S = 8, E = 4;
const array logits{2, 1, 0, -1, 2, 0, 1, -1, 1.5, 1, 0, .5, 0, 2, 1, -1, 2, -1, 0, 1, -1, 0, 2, 1, 1, 2, -1, 0, 3, 0, 2, 1};
const array first_row{.643914, .236883, .087144, .032059};
const array mean_gates{.42335, .25489, .207806, .113954};
constexpr double paper_aux = 0.088573, switch_aux = 1.417167, z_loss = 6.599247;

/// A choice that got a slot.
struct choice {
  std::size_t token, expert, slot;
  double weight;
};

/// The kept choices with C slots per expert. `chosen`: the two gates of a token are normalized before one is dropped. `kept`: afterwards.
std::vector<choice> known(std::size_t capacity, gate_norm norm) {
  constexpr double a = .731059, b = .268941, c = .622459, d = .377541;
  const double one = norm == gate_norm::kept ? 1 : a, second = norm == gate_norm::kept ? 1 : b;  // of a token's only kept choice
  if (capacity == 4)
    return {{0, 0, 0, a}, {0, 1, 2, b}, {1, 0, 1, a}, {1, 2, 1, b}, {2, 0, 2, c}, {2, 1, 3, d}, {3, 1, 0, a},  {3, 2, 2, b},
            {4, 0, 3, a}, {4, 3, 0, b}, {5, 2, 0, a}, {5, 3, 1, b}, {6, 1, 1, one}, {7, 2, 3, second}};
  return {{0, 0, 0, one}, {1, 0, 1, a}, {1, 2, 1, b}, {3, 1, 0, one}, {4, 3, 0, second}, {5, 2, 0, a}, {5, 3, 1, b}, {6, 1, 1, one}};
}

void check_near(const array& found, const array& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(found[i] - expected[i]) < 2e-6);  // the known answers have six digits
  }
}

/// Checks combine [S,E,C], dispatch [S,E,C] and load [E].
void check_choices(const array& combine, const array& dispatch, const array& load, std::size_t capacity, gate_norm norm) {
  array weights(S * E * capacity), ones(weights.size()), count(E);
  for (const choice& one : known(capacity, norm)) {
    const std::size_t at = (one.token * E + one.expert) * capacity + one.slot;
    weights[at] = one.weight;
    ones[at] = 1;
    count[one.expert] += 1;
  }
  check_near(combine, weights);
  CHECK(dispatch == ones);
  CHECK(load == count);
}

template <class T>
void check_kernel(std::size_t capacity, gate_norm norm) {
  const std::vector<T> given(logits.begin(), logits.end());
  std::vector<T> gates(S * E);
  gs::kernel::softmax(given.data(), gates.data(), S, E);
  check_near(array(gates.begin(), gates.begin() + E), first_row);
  std::vector<std::int32_t> slot(S * 2);
  std::vector<T> weight(S * 2), load(E);
  T aux;
  gs::kernel::gating_rules<T> rules;
  rules.gates_as_weights = norm == gate_norm::kept;  // the verb normalizes them
  gs::kernel::top_k_gating<T>(gates.data(), nullptr, slot.data(), weight.data(), &aux, load.data(), nullptr, nullptr,
                              {1, S, E, std::int64_t(capacity)}, false, {}, 0, rules);
  check_near({double(aux)}, {paper_aux});
  array combine(S * E * capacity), dispatch(combine.size());
  for (std::size_t i = 0; i < slot.size(); ++i) {
    if (slot[i] < 0) continue;
    const T sum = norm == gate_norm::kept ? weight[i / 2 * 2] + weight[i / 2 * 2 + 1] : T(1);
    const std::size_t at = i / 2 * E * capacity + std::size_t(slot[i]);
    combine[at] = double(weight[i] / sum);
    dispatch[at] = 1;
  }
  check_choices(combine, dispatch, array(load.begin(), load.end()), capacity, norm);
}

/// Runs a model of T. Its input is the logits, and its parameter, if any, the identity.
template <class T>
arrays run(const std::function<symbols(const scope&, symbol, symbol)>& model) {
  constexpr gs::dtype type = std::is_same_v<T, float> ? gs::dtype::f32 : gs::dtype::f64;
  const run_graph::traced t = run_graph::trace({{"GSM", type}, {"GS", type}}, [&](const scope& m, std::span<const symbol> x) {
    return model(scope(m.owner(), type), x[0], x[1]);
  });
  array identity(E * E);
  for (std::size_t e = 0; e < E; ++e) identity[e * E + e] = 1;
  arrays sources{logits, array(S, 1)};
  if (t.sources() > 2) sources.push_back(identity);
  return run_graph::run(t, run_graph::serial(t, {{'G', 1}, {'S', S}, {'M', E}, {'E', E}}), sources);
}

symbols results_of(const gs::gating_result& r) { return {r.combine, r.dispatch, r.load, r.aux}; }

void check_verb(const arrays& found, std::size_t capacity, gate_norm norm) {
  check_choices(found[0], found[1], found[2], capacity, norm);
  check_near(found[3], {paper_aux});
}

}  // namespace

TEST_CASE_TEMPLATE("gating: known slots, weights and auxiliary loss, of the kernel and of all verbs", T, float, double) {
  for (const std::size_t capacity : {2u, 4u}) {
    CAPTURE(capacity);
    const gs::capacity places{double(capacity) * E / S};
    for (const gate_norm norm : {gate_norm::chosen, gate_norm::kept}) {
      CAPTURE(int(norm));
      check_kernel<T>(capacity, norm);
      check_verb(run<T>([=](const scope&, symbol x, symbol mask) {
        return results_of(gs::top_k_gating(gs::softmax(x), mask, {.k = 2, .slots = places, .norm = norm}));
      }), capacity, norm);
      check_verb(run<T>([=](const scope&, symbol x, symbol) {
        return results_of(gs::top_k_gating(gs::softmax(x), {.k = 2, .slots = places, .norm = norm}));
      }), capacity, norm);
      const arrays routed = run<T>([=](const scope& m, symbol x, symbol mask) {
        symbols results = results_of(gs::nn::route(m, x, mask, {.k = 2, .slots = places, .norm = norm}));
        results.push_back(m.auxiliary());
        return results;
      });
      check_verb(routed, capacity, norm);
      check_near(routed[4], {paper_aux});
    }
    check_verb(run<T>([=](const scope&, symbol x, symbol mask) {
      return results_of(gs::top_k_gating(gs::softmax(x), mask, {.slots = places, .training = false}));
    }), capacity, gate_norm::chosen);
    check_verb(run<T>([=](const scope&, symbol x, symbol) {
      return results_of(gs::top_k_gating(gs::softmax(x), {.slots = places, .training = false}));
    }), capacity, gate_norm::chosen);
  }
}

TEST_CASE_TEMPLATE("gating: known mean gates, z-loss, and the auxiliary loss of Switch Transformers", T, float, double) {
  const arrays found = run<T>([](const scope& m, symbol x, symbol mask) {
    const symbol gates = gs::softmax(x);
    const symbol routed = gs::nn::route(m, x, mask, {.k = 1, .balance = balance::off, .z_loss = 1}).aux;
    const symbol gated = gs::top_k_gating(gates, {.k = 1}).aux;
    return symbols{gs::mean<"GSE->E">(gates), m.auxiliary(), double(E * E) * routed, double(E * E) * gated};
  });
  check_near(found[0], mean_gates);
  check_near(found[1], {z_loss});
  check_near(found[2], {switch_aux});
  check_near(found[3], {switch_aux});
}
