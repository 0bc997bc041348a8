// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NaN at padding, and at tokens, in layers with a padding mask.
#include <gshard/models/language_model.hpp>
#include <gshard/moe/layer/moe.hpp>
#include <gshard/testing/check_shardings.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace gs = gshard;
using gs::symbol;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// One device, and two meshes with every second sharding of the inputs.
std::vector<gs::testing::setting> settings_of(const gs::testing::traced& t, const gs::dims& dims) {
  std::vector<gs::testing::setting> all{gs::testing::serial(t, dims)};
  for (const std::vector<int>& mesh : {std::vector{2}, std::vector{3, 2}})
    for (int dim = 0; dim < 2; ++dim) {
      gs::testing::setting s{.mesh = mesh, .dims = dims, .layouts = {}};
      for (const std::int32_t v : t.free) {
        s.layouts.push_back(gs::sharding::unconstrained(t.graph.at(v).rank()));
        if (t.graph.at(v).rank() > dim) s.layouts.back()[dim].push_back(0);
      }
      all.push_back(s);
    }
  return all;
}

bool all_finite(const gs::testing::array& x, std::size_t from, std::size_t count) {
  for (std::size_t i = from; i < from + count; ++i)
    if (!std::isfinite(x[i])) return false;
  return true;
}

}  // namespace

TEST_CASE("moe: a NaN at padding reaches no other token, load or loss; one at a token reaches its result and the loss") {
  using options = gs::nn::moe_options;
  const std::pair<const char*, options> cases[]{
      {"slots", {}},
      {"few slots, z-loss", {.routing = {.k = 3, .slots = {1}, .z_loss = 0.1}}},
      {"groups", {.routing = {.z_loss = 0.1}, .experts = gs::experts::in_groups(2), .swiglu = true}},
      {"chunks", {.routing = {.slots = {2}}, .biases = true, .chunks = 2}},
      {"dropless", {.experts = gs::experts::dropless()}},
      {"dropless in groups, few rows", {.routing = {.z_loss = 0.1}, .experts = gs::experts::dropless(2, {1}), .biases = true}},
      {"experts choose", {.routing = {.slots = {1}, .choice = gs::choice::by_experts, .z_loss = 0.1}}},
      {"bias, sigmoid", {.routing = {.score = gs::gate_score::sigmoid, .balance = gs::balance::bias(), .z_loss = 0.1}}},
      {"sets of experts", {.routing = {.sets = {.count = 2}}}},
      {"noise", {.routing = {.choice = gs::choice::sampled_second, .jitter = 0.1, .gumbel = 0.1, .z_loss = 0.1}}},
  };
  const gs::dims dims{{'G', 2}, {'S', 5}, {'M', 3}, {'E', 4}, {'F', 2}};
  constexpr std::size_t tokens = 10, width = 3;
  for (const auto& [name, o] : cases) {
    CAPTURE(std::string(name));
    const gs::testing::traced t =
        gs::testing::trace({{"GSM"}, {"GS"}}, [&, o = o](const gs::parameter_scope& m, std::span<const symbol> x) {
          const gs::nn::moe_result r = gs::nn::moe<"x">(m, x[0], x[1], o);
          return gs::list<symbol>{r.y, r.load, r.overflow, m.objective(gs::sum(r.load), 1)};
        });
    gs::testing::arrays clean = gs::testing::random_sources(t, dims, 3);
    const auto is_padding = [](std::size_t s) { return s % 3 == 1; };
    for (std::size_t s = 0; s < tokens; ++s) clean[1][s] = is_padding(s) ? 0 : 1;
    gs::testing::arrays spoiled = clean, wrong = clean;
    for (std::size_t s = 0; s < tokens; ++s)
      if (is_padding(s)) spoiled[0][s * width + s % width] = not_a_number;
    wrong[0][2 * width] = not_a_number;
    for (const gs::testing::setting& s : settings_of(t, dims)) {
      CAPTURE(gs::testing::text_of(s));
      const gs::testing::arrays expected = gs::testing::run(t, s, clean), found = gs::testing::run(t, s, spoiled),
                                alarmed = gs::testing::run(t, s, wrong);
      for (std::size_t token = 0; token < tokens; ++token)
        for (std::size_t i = token * width; i < (token + 1) * width; ++i) CHECK(found[0][i] == (is_padding(token) ? 0 : expected[0][i]));
      for (std::size_t r = 1; r < 4; ++r) CHECK(found[r] == expected[r]);
      CHECK(all_finite(expected[0], 0, tokens * width));
      for (std::size_t token = 0; token < tokens; ++token)
        if (token != 2) CHECK(all_finite(alarmed[0], token * width, width));
      const bool is_computed = o.experts.rows.factor == 0 && o.routing.slots.factor == 0;
      for (std::size_t i = 2 * width; i < 3 * width; ++i) CHECK((std::isnan(alarmed[0][i]) || !is_computed));
      const bool has_loss = !o.routing.choice.experts_choose || o.routing.z_loss > 0;
      if (o.routing.balance == gs::balance::loss && has_loss) CHECK(std::isnan(alarmed[3][0]));
    }
  }
}

TEST_CASE("language_model: a NaN at padding reaches only the logits of padding; one at a token reaches those of later tokens alone") {
  const gs::dims dims{{'G', 2}, {'B', 1}, {'T', 6}, {'V', 7}, {'M', 4}, {'E', 2}, {'F', 3}, {'H', 1}, {'R', 2}, {'D', 2}};
  const gs::testing::traced t =
      gs::testing::trace({{"GBT", gs::dtype::i32, 'V'}}, [](const gs::parameter_scope& m, std::span<const symbol> x) {
        gs::nn::routing_summary routing;
        return gs::list<symbol>{gs::nn::language_model<"x">(m, x[0], {.layers = 2, .moe_every = 2, .tied_head = false}, routing)};
      });
  gs::testing::arrays sources = gs::testing::random_sources(t, dims, 3);
  sources[0] = {3, 1, 2, 4, 0, 0, 5, 2, 6, 0, 0, 0};
  std::size_t table = 1;
  while (t.graph.parameters[table - 1].name.view() != "model.embed_tokens.weight") ++table;
  for (const gs::testing::setting& s : settings_of(t, dims)) {
    CAPTURE(gs::testing::text_of(s));
    for (const int spoiled : {0, 2}) {
      gs::testing::arrays with = sources;
      with[table][std::size_t(spoiled) * 4 + 1] = not_a_number;
      const gs::testing::array expected = gs::testing::run(t, s, sources)[0], found = gs::testing::run(t, s, with)[0];
      for (std::size_t i = 0; i < 12; ++i) {
        bool reached = false;
        for (std::size_t k = i - i % 6; k <= i; ++k) reached = reached || int(with[0][k]) == spoiled;
        for (std::size_t v = i * 7; v < (i + 1) * 7; ++v)
          if (reached) CHECK(std::isnan(found[v]));
          else CHECK(std::abs(found[v] - expected[v]) < 1e-12);
      }
    }
  }
}
