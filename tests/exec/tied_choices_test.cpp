// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Experts that choose among tied tokens: with equal scores the choice is the same on every sharding, and only near-ties may flip.
#include "run_graph.hpp"

#include <gshard/core/trace/einsum.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/ops/rows/softmax.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace gs = gshard;
using gs::symbol;
using run_graph::lay_out;

namespace {

/// Extents of a routing.
struct routing_size {
  std::size_t groups, tokens, experts;

  std::size_t at(std::size_t g, std::size_t s, std::size_t e) const { return (g * tokens + s) * experts + e; }
};

/// The tokens that each expert takes, from dispatch [G,S,E,C].
std::vector<char> chosen_tokens(const run_graph::array& dispatch, const routing_size& n) {
  const std::size_t slots = dispatch.size() / (n.groups * n.tokens * n.experts);
  std::vector<char> taken(n.groups * n.tokens * n.experts, 0);
  for (std::size_t i = 0; i < dispatch.size(); ++i)
    if (dispatch[i] != 0) taken[i / slots] = 1;
  return taken;
}

/// The choices that differ without a near-tie: an expert takes another token in the other run, and their scores differ by more than the
/// rounding of a few additions. Empty if all differences are near-ties.
std::string more_than_near_ties(const std::vector<char>& a, const std::vector<char>& b, const run_graph::array& scores, const routing_size& n) {
  constexpr double rounding = 16 * std::numeric_limits<double>::epsilon();
  for (std::size_t g = 0; g < n.groups; ++g)
    for (std::size_t e = 0; e < n.experts; ++e)
      for (std::size_t s = 0; s < n.tokens; ++s)
        for (std::size_t t = 0; t < n.tokens; ++t) {
          const std::size_t i = n.at(g, s, e), j = n.at(g, t, e);
          const bool only_in_a = a[i] && !b[i], only_in_b = b[j] && !a[j];
          if (!only_in_a || !only_in_b) continue;
          if (!(std::abs(scores[i] - scores[j]) <= rounding * std::max(std::abs(scores[i]), std::abs(scores[j]))))
            return "expert " + std::to_string(e) + " takes token " + std::to_string(s) + " of group " + std::to_string(g) + " and not " +
                   std::to_string(t) + ", whose scores are " + std::to_string(scores[i]) + " and " + std::to_string(scores[j]);
        }
  const auto count = [](const std::vector<char>& v) { return std::count(v.begin(), v.end(), char(1)); };
  return count(a) == count(b) ? "" : "another number of tokens is taken";
}

/// Random extents and shardings of a program with inputs [G,S,E], on 2 x 3 and 11 x 3 devices.
struct routing_run {
  routing_size size;
  run_graph::setting setting;

  routing_run(const run_graph::traced& t, std::mt19937& gen)
      : size{1 + gen() % 4, 4 + gen() % 10, 2 + gen() % 11},
        setting{.mesh = {gen() % 2 ? 11 : 2, 3},
                .dims = {{'G', std::int64_t(size.groups)}, {'S', std::int64_t(size.tokens)}, {'E', std::int64_t(size.experts)}},
                .layouts = {}} {
    setting.options.uneven = true;
    for (const std::int32_t v : t.free) {
      const auto all = run_graph::all_layouts(t.graph.at(v).rank(), 2);
      setting.layouts.push_back(all[gen() % all.size()]);
    }
  }
};

run_graph::array few_numbers(std::size_t count, std::mt19937& gen) {
  run_graph::array a(count);
  for (double& v : a) v = double(gen() % 3);
  return a;
}

gs::routing_options by_experts(symbol scores) {
  return {.slots = {1.5}, .choice = gs::choice::by_experts, .norm = gs::gate_norm::off, .scores = scores};
}

}  // namespace

TEST_CASE("scores that are equal choose the same tokens and experts on every sharding") {
  for (const bool experts_choose : {true, false}) {
    const run_graph::traced t = run_graph::trace({{"GSE"}, {"GSE"}}, [=](const gs::parameter_scope&, std::span<const symbol> x) {
      const symbol gates = gs::softmax(lay_out(x[0])), scores = lay_out(x[1]);
      const gs::gating_result r = experts_choose ? gs::top_k_gating(gates, by_experts(scores))
                                                 : gs::top_k_gating(gates, {.k = 2, .slots = gs::capacity{1.0}, .scores = scores});
      return gs::list<symbol>{lay_out(r.dispatch)};
    });
    std::mt19937 gen(11);
    for (int turn = 0; turn < 150; ++turn) {
      const routing_run r(t, gen);
      const std::size_t n = r.size.groups * r.size.tokens * r.size.experts;
      const run_graph::arrays sources{few_numbers(n, gen), few_numbers(n, gen)};
      if (run_graph::run(t, r.setting, sources) != run_graph::serially(t, r.setting.dims, sources)) FAIL_CHECK(run_graph::text_of(r.setting));
    }
  }
}

// Softmax of equal logits in another order adds in another order. Equal rows do as well, on devices with other numbers of rows.
TEST_CASE("tokens that flip between experts on another sharding are near-ties") {
  const run_graph::traced t = run_graph::trace({{"GSE"}}, [](const gs::parameter_scope&, std::span<const symbol> x) {
    const symbol gates = gs::softmax(lay_out(x[0]));
    return gs::list<symbol>{gates, lay_out(gs::top_k_gating(gates, by_experts({})).dispatch)};
  });
  std::mt19937 gen(7);
  int flips = 0;
  for (int turn = 0; turn < 600; ++turn) {
    const routing_run r(t, gen);
    const run_graph::arrays sources{few_numbers(r.size.groups * r.size.tokens * r.size.experts, gen)};
    const run_graph::arrays found = run_graph::run(t, r.setting, sources), alone = run_graph::serially(t, r.setting.dims, sources);
    CHECK(run_graph::distance({found[0]}, {alone[0]}) < 1e-14);
    const std::vector<char> here = chosen_tokens(found[1], r.size), there = chosen_tokens(alone[1], r.size);
    flips += here != there;
    if (const std::string said = more_than_near_ties(here, there, alone[0], r.size); !said.empty())
      FAIL_CHECK(said << "; " << run_graph::text_of(r.setting));
  }
  CHECK(flips > 0);
  CHECK(flips < 60);
}

TEST_CASE("a choice that differs by more than rounding is no near-tie") {
  const routing_size n{1, 3, 1};
  CHECK(more_than_near_ties({1, 0, 0}, {0, 1, 0}, {0.5, 0.5 * (1 + 1e-15), 0.1}, n) == "");
  CHECK(more_than_near_ties({1, 0, 0}, {0, 1, 0}, {0.5, 0.5 * (1 + 1e-13), 0.1}, n) ==
        "expert 0 takes token 0 of group 0 and not 1, whose scores are 0.500000 and 0.500000");
  CHECK(more_than_near_ties({1, 0, 0}, {1, 1, 0}, {0.5, 0.5, 0.1}, n) == "another number of tokens is taken");
  CHECK(!more_than_near_ties({1, 0, 0}, {0, 0, 1}, {0.5, std::nan(""), std::nan("")}, n).empty());
}
