// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// With any layouts, tokens get the same experts and slots, and their gradients return in the same way.
#include "run_graph.hpp"

#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/moe/routing/chunks.hpp>
#include <gshard/moe/routing/dropless.hpp>
#include <gshard/moe/routing/expert_groups.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/moe/routing/routing.hpp>
#include <gshard/ops/rows/softmax.hpp>

#include <algorithm>
#include <array>

namespace gs = gshard;
using gs::einsum, gs::symbol;
using run_graph::every_sharding, run_graph::trace, run_graph::lay_out;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using scope = gs::parameter_scope;

namespace {

const std::vector<gs::dims> routing_sizes{{{'G', 6}, {'S', 12}, {'E', 6}, {'M', 6}},
                                  {{'G', 5}, {'S', 7}, {'E', 3}, {'M', 4}},
                                  {{'G', 1}, {'S', 5}, {'E', 2}, {'M', 1}}};

/// Every third token of the mask is padding.
void binary_mask(run_graph::arrays& sources) {
  for (std::size_t i = 0; i < sources[1].size(); ++i) sources[1][i] = i % 3 == 1 ? 0 : 1;
}

symbols gated(given x, bool dense_results) {
  const gs::gating_result r = gs::top2_gating(gs::softmax(x[0]), x[1], gs::capacity{1.0});
  symbols results{r.aux, r.load, r.overflow};
  if (dense_results) {
    results.push_back(lay_out(r.combine));
    results.push_back(lay_out(r.dispatch));
  }
  return results;
}

/// Dispatches to k experts, applies a non-linear function, combines. Gradients of <y, dy> + aux for tokens and gates.
symbols routed(given x, int k = 2) {
  const gs::gating_result r = gs::top_k_gating(gs::softmax(x[0]), x[1], {.k = k, .slots = gs::capacity{k / 2.0}});
  const symbol in = lay_out(einsum<"GSEC,GSM->EGCM">(r.dispatch, x[2]));
  const symbol y = einsum<"GSEC,EGCM->GSM">(r.combine, in * in);
  symbols results{y};
  for (const symbol& g : gs::gradients(gs::sum(y * x[3]) + r.aux, std::array{x[2], x[0]}))
    results.push_back(lay_out(g));
  return results;
}

/// The same through groups of experts, in chunks of token groups.
symbols routed_by_groups(given x, int k, int groups, const gs::capacity& rows, int chunks = 1) {
  const gs::gating_result r = gs::top_k_gating(gs::softmax(x[0]), x[1], {.k = k, .slots = gs::capacity{k / 2.0}});
  const auto gatings = gs::chunks_of_token_groups(r, chunks);
  const symbols tokens = gs::chunks_of_token_groups(x[2], chunks);
  symbols y, overflow;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const gs::expert_group_routing sent = gs::send_to_expert_groups(gatings[i], tokens[i], groups, rows);
    const symbol in = lay_out(gs::dispatch_in_groups(sent));
    y.push_back(gs::combine_groups(sent, lay_out(gs::sum_in_groups(sent, in * in))));
    overflow.push_back(sent.overflow);
  }
  symbols results{gs::join_token_groups(y), gs::join_token_groups(overflow)};
  for (const symbol& g : gs::gradients(gs::sum(results[0] * x[3]) + r.aux, std::array{x[2], x[0]})) results.push_back(lay_out(g));
  return results;
}

const std::vector<run_graph::input> inputs{{"GSE"}, {"GS"}, {"GSM"}, {"GSM"}};

}  // namespace

TEST_CASE("top2_gating and its one-hot tensors") {
  every_sharding(trace({{"GSE"}, {"GS"}}, [](const scope&, given x) { return gated(x, true); }),
                 {.dims = routing_sizes, .tolerance = 1e-14, .prepare = binary_mask});
}

TEST_CASE("gradients of one-hot tensors and of the gates below them") {
  const auto program = [](const scope&, given x) {
    const gs::gating_result r = gs::top2_gating(gs::softmax(x[0]), x[1]);
    const symbol weights =
        einsum<"GSEC->GE">(gs::map<[](auto a, auto b) { return a * a * b; }>(lay_out(r.combine), r.dispatch));
    return symbols{gs::gradients(gs::sum(weights * x[2]) + r.aux, std::array{x[0]})[0]};
  };
  every_sharding(trace({{"GSE"}, {"GS"}, {"GE"}}, program),
                 {.dims = routing_sizes, .tolerance = 1e-13, .prepare = binary_mask});
}

TEST_CASE("dispatch and combine by index, with gradients") {
  const run_graph::traced t = trace(inputs, [](const scope&, given x) { return routed(x); });
  CHECK(run_graph::plan(t, run_graph::serial(t, routing_sizes[0])).view().count(gs::op::einsum) <= 2);
  every_sharding(t, {.dims = routing_sizes, .tolerance = 1e-12, .prepare = binary_mask});
}

TEST_CASE("dispatch and combine for one and for five experts per token, with gradients") {
  for (const int k : {1, 5})
    every_sharding(trace(inputs, [k](const scope&, given x) { return routed(x, k); }),
                   {.dims = routing_sizes, .tolerance = 1e-12, .prepare = binary_mask});
}

TEST_CASE("top_k_gating without k equals top2_gating, bit for bit") {
  const auto program = [](bool top_k) {
    return trace({{"GSE"}, {"GS"}}, [=](const scope&, given x) {
      const symbol gates = gs::softmax(x[0]);
      const gs::gating_result r = top_k ? gs::top_k_gating(gates, x[1], {.slots = gs::capacity{1.0}})
                                        : gs::top2_gating(gates, x[1], gs::capacity{1.0});
      symbols results{r.aux, r.load, r.overflow, r.combine, r.dispatch};
      results.push_back(gs::gradients(gs::sum(gs::sum<"GSEC->GE">(r.combine * r.combine)) + r.aux, std::array{x[0]})[0]);
      return results;
    });
  };
  const run_graph::traced one = program(true), other = program(false);
  for (const gs::dims& dims : routing_sizes) {
    run_graph::arrays sources = run_graph::random_sources(one, dims, 3);
    binary_mask(sources);
    CHECK(run_graph::distance(run_graph::run(one, run_graph::serial(one, dims), sources),
                              run_graph::run(other, run_graph::serial(other, dims), sources)) == 0);
  }
}

TEST_CASE("dispatch and combine by dense einsums, with gradients") {
  const run_graph::traced t =
      trace(inputs, [](const scope&, given x) { return routed(x); }, {.sparse_one_hot = false});
  CHECK(run_graph::plan(t, run_graph::serial(t, routing_sizes[0])).view().count(gs::op::dispatch) == 0);
  every_sharding(t, {.dims = routing_sizes, .tolerance = 1e-12, .prepare = binary_mask});
}

TEST_CASE("by index and by dense einsums are the same numbers") {
  for (const int k : {2, 3, 5}) {
    const auto program = [k](const scope&, given x) { return routed(x, k); };
    const run_graph::traced index = trace(inputs, program), dense = trace(inputs, program, {.sparse_one_hot = false});
    for (const gs::dims& dims : routing_sizes) {
      run_graph::arrays sources = run_graph::random_sources(index, dims, 3);
      binary_mask(sources);
      CHECK(run_graph::distance(run_graph::run(index, run_graph::serial(index, dims), sources),
                                run_graph::run(dense, run_graph::serial(dense, dims), sources)) < 1e-13);
    }
  }
}

TEST_CASE("through expert groups, with gradients") {
  const auto check = [](int k, int groups, const gs::capacity& rows) {
    every_sharding(trace(inputs, [=](const scope&, given x) { return routed_by_groups(x, k, groups, rows); }),
                   {.dims = routing_sizes, .tolerance = 1e-12, .prepare = binary_mask});
  };
  check(3, 2, {0});
  check(2, 2, {.factor = 0.5, .minimum = 2, .multiple = 3});
  check(4, 3, {1.5});  // some tokens get no row
}

TEST_CASE("through expert groups in chunks of token groups, with gradients: the bits without chunks") {
  const std::vector<gs::dims> sizes{{{'G', 6}, {'S', 5}, {'E', 4}, {'M', 2}}};
  const auto check = [&](int k, int groups, const gs::capacity& rows, int chunks) {
    const auto program = [=](int parts) {
      return trace(inputs, [=](const scope&, given x) { return routed_by_groups(x, k, groups, rows, parts); });
    };
    const run_graph::traced whole = program(1), cut = program(chunks);
    every_sharding(cut, {.dims = sizes, .tolerance = 1e-12, .most = 100, .prepare = binary_mask});
    for (const gs::dims& dims : sizes) {
      run_graph::arrays sources = run_graph::random_sources(whole, dims, 3);
      binary_mask(sources);
      const run_graph::arrays one = run_graph::run(whole, run_graph::serial(whole, dims), sources);
      CHECK(run_graph::distance(run_graph::run(cut, run_graph::serial(cut, dims), sources), one) == 0);
    }
  };
  check(3, 2, {0}, 2);
  check(4, 3, {1.5}, 3);  // some tokens get no row
}

TEST_CASE("through expert groups with a row for every token: the numbers of one group, up to the order of sums") {
  for (const int k : {1, 2, 4})
    for (const int groups : {1, 2, 3}) {
      const run_graph::traced one = trace(inputs, [=](const scope&, given x) { return routed(x, k); });
      const run_graph::traced several = trace(inputs, [=](const scope&, given x) {
        symbols r = routed_by_groups(x, k, groups, {0});
        return symbols{r[0], r[2], r[3], r[1]};
      });
      for (const gs::dims& dims : routing_sizes) {
        CAPTURE(k);
        CAPTURE(groups);
        run_graph::arrays sources = run_graph::random_sources(one, dims, 3);
        binary_mask(sources);
        run_graph::arrays found = run_graph::run(several, run_graph::serial(several, dims), sources);
        CHECK(std::all_of(found[3].begin(), found[3].end(), [](double refused) { return refused == 0; }));
        found.pop_back();
        CHECK(run_graph::distance(found, run_graph::run(one, run_graph::serial(one, dims), sources)) < 1e-13);
      }
    }
}

namespace {

/// Without slots: k experts with a matrix [M,F], a bias, a non-linear function, and a matrix [F,M]. Returns y, overflow, and the gradients
/// of <y, dy> + aux for tokens, gates and weights.
symbols routed_as_rows(const scope& m, given x, int k, int groups, const gs::capacity& rows) {
  const gs::gating_result gating = gs::top_k_gating(gs::softmax(x[0]), x[1], {.k = k, .slots = gs::capacity::unlimited()});
  const gs::expert_row_routing r = gs::send_rows(gating, x[2], groups, rows);
  const gs::init any = gs::init::normal(1);
  const symbol wi = gs::expert_param(m, r, "wi", "MF", any), bi = gs::expert_param(m, r, "bi", "F", any);
  const symbol wo = gs::expert_param(m, r, "wo", "FM", any);
  const symbol h = lay_out(gs::add_to_rows(r, gs::grouped_product(r, r.rows, lay_out(wi)), bi));
  const symbol y = gs::combine_rows(r, gs::grouped_product(r, h * h, wo));
  symbols results{y, r.overflow};
  for (const symbol& g : gs::gradients(gs::sum(y * x[3]) + gating.aux, std::array{x[2], x[0], bi, wo, wi})) results.push_back(g);
  results.back() = lay_out(results.back());
  return results;
}

}  // namespace

TEST_CASE("experts without slots, with gradients") {
  const std::vector<gs::dims> sizes{{{'G', 3}, {'S', 5}, {'E', 5}, {'M', 3}, {'F', 4}}};
  const auto check = [&](int k, int groups, const gs::capacity& rows) {
    every_sharding(trace(inputs, [=](const scope& m, given x) { return routed_as_rows(m, x, k, groups, rows); }),
                   {.dims = sizes, .tolerance = 1e-12, .prepare = binary_mask});
  };
  check(2, 2, {0});
  check(1, 1, {0.5});  // some tokens get no row
  check(3, 3, {1.5});  // also here; with five experts, groups differ in size
}

namespace {

/// Dispatches, squares, combines. Returns y, the load, and gradients of <y, dy> + aux for tokens and gates.
symbols results_of(const gs::gating_result& r, given x) {
  const symbol in = lay_out(einsum<"GSEC,GSM->EGCM">(r.dispatch, x[2]));
  const symbol y = einsum<"GSEC,EGCM->GSM">(r.combine, in * in);
  symbols results{y, r.load, r.overflow};
  for (const symbol& g : gs::gradients(gs::sum(y * x[3]) + r.aux, std::array{x[2], x[0]})) results.push_back(lay_out(g));
  return results;
}
const std::vector<run_graph::input> with_scores{{"GSE"}, {"GS"}, {"GSM"}, {"GSM"}, {"GSE"}, {"GS"}};

}  // namespace

TEST_CASE("experts chosen by scores, and tokens by importance, with gradients") {
  const auto check = [](bool has_mask) {
    const auto program = [=](const scope&, given x) {
      gs::routing_options o{.k = 3, .slots = gs::capacity{1.5}, .norm = gs::gate_norm::kept, .scale = 2.5, .scores = x[4]};
      if (!has_mask) return results_of(gs::top_k_gating(gs::softmax(x[0]), o), x);
      o.importance = x[5];
      return results_of(gs::top_k_gating(gs::softmax(x[0]), x[1], o), x);
    };
    every_sharding(trace(with_scores, program), {.dims = {routing_sizes[1]}, .tolerance = 1e-12, .prepare = binary_mask});
  };
  check(false);
  check(true);
}

TEST_CASE("second experts that are sampled, or above a threshold, with slots for all tokens") {
  for (const gs::choice& choice : {gs::choice::sampled_second, gs::choice::second_above(0.3)}) {
    const auto program = [=](const scope&, given x) {
      const gs::routing_options o{.slots = gs::capacity::unlimited(), .choice = choice};
      return results_of(gs::top_k_gating(gs::softmax(x[0]), x[1], o), x);
    };
    every_sharding(trace(inputs, program), {.dims = {routing_sizes[1]}, .tolerance = 1e-12, .prepare = binary_mask});
  }
}

TEST_CASE("tokens chosen by experts, with gradients") {
  for (const gs::gate_norm norm : {gs::gate_norm::off, gs::gate_norm::kept}) {
    const auto program = [=](const scope&, given x) {
      const gs::routing_options o{.slots = gs::capacity{1.5}, .choice = gs::choice::by_experts, .norm = norm};
      return results_of(gs::top_k_gating(gs::softmax(x[0]), x[1], o), x);
    };
    every_sharding(trace(inputs, program), {.dims = {routing_sizes[1]}, .tolerance = 1e-12, .prepare = binary_mask});
  }
}

TEST_CASE("dispatch and combine with the experts' dims in another order") {
  const auto program = [](const scope&, given x) {
    const gs::gating_result r = gs::top2_gating(gs::softmax(x[0]), x[1]);
    const symbol in = lay_out(einsum<"GSEC,GSM->CEGM">(r.dispatch, x[2]));
    return symbols{lay_out(einsum<"GSEC,GECM->GSM">(r.combine, einsum<"CEGM->GECM">(in)))};
  };
  every_sharding(trace({{"GSE"}, {"GS"}, {"GSM"}}, program),
                 {.dims = routing_sizes, .tolerance = 1e-13, .prepare = binary_mask});
}
