// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The communication of layers with other routers, and calls that routers refuse.
#include <gshard/moe/layer/moe.hpp>
#include <gshard/moe/layer/router.hpp>
#include <gshard/plan.hpp>

#include "../../soundness.hpp"
#include "../../tracing.hpp"

#include <array>
#include <limits>
#include <tuple>

namespace gs = gshard;
namespace nn = gshard::nn;
namespace op = gs::op;
using gs::fault, gs::none, gs::P;
using tracing::fails, tracing::input;
using router = gs::routing_options;

namespace {

using mesh = gs::mesh<gs::axis<"data">, gs::axis<"expert">>;
using groups = P<gs::axes<"data", "expert">, none, none>;
using tokens = gs::in<"GSM", groups>;
using padding = gs::in<"GS", P<gs::axes<"data", "expert">, none>>;

template <nn::moe_options Options>
inline constexpr auto layer = [](auto& m, auto x, auto mask) { return nn::moe<"expert">(m, x, mask, Options).y; };
template <nn::moe_options Options>
inline constexpr auto backward = [](auto& m, auto x, auto mask) {
  auto y = nn::moe<"expert">(m, x, mask, Options).y;
  return gs::gradients(gs::sum(y * y), std::array{x})[0];
};
/// Forward 2 all-to-alls, with gradients 4, and nothing else, for any router.
template <router Router>
constexpr bool sends_as_the_paper() {
  using forward = gs::program<layer<nn::moe_options{.routing = Router}>, mesh, tokens, padding>;
  using both = gs::program<backward<nn::moe_options{.routing = Router}>, mesh, tokens, padding>;
  return forward::plan.count(op::all_to_all) == 2 && forward::plan.collectives() == 2 && both::plan.count(op::all_to_all) == 4 &&
         both::plan.collectives() == 4 && forward::plan.count(op::one_hot) == 0 && both::plan.count(op::one_hot) == 0 &&
         soundness::is_sound(both::plan);
}

static_assert(sends_as_the_paper<router{}>());
static_assert(sends_as_the_paper<router{.k = 8, .score = gs::gate_score::sigmoid, .norm = gs::gate_norm::kept, .scale = 2.5}>());
static_assert(sends_as_the_paper<router{.k = 4, .sets = {.count = 4, .per_token = 2}}>());
static_assert(sends_as_the_paper<router{.jitter = 0.01, .gumbel = 1}>());
static_assert(sends_as_the_paper<router{.choice = gs::choice::by_experts, .norm = gs::gate_norm::off}>());
// The bias is replicated, so the demand is summed.
using biased = gs::program<layer<nn::moe_options{.routing = {.balance = gs::balance::bias()}}>, mesh, tokens, padding>;
static_assert(biased::plan.count(op::all_to_all) == 2 && biased::plan.count(op::all_reduce) == 1 && biased::plan.collectives() == 3);
// Load and demand are summed together.
template <gs::balance Balance>
inline constexpr auto measured = [](auto& m, auto x, auto mask) {
  const nn::moe_result r = nn::moe<"expert">(m, x, mask, {.routing = {.balance = Balance}});
  return std::tuple{r.y, r.load, r.overflow, nn::measure_balance(r.demand, r.overflow).busiest};
};
template <gs::balance Balance>
using with_measures = gs::program<measured<Balance>, mesh, tokens, padding>;
template <gs::balance Balance>
constexpr bool sums_together = with_measures<Balance>::plan.collectives() == 4 && with_measures<Balance>::plan.count(op::all_reduce) == 2;
static_assert(sums_together<gs::balance::off> && sums_together<gs::balance::bias()>);
inline constexpr nn::moe_options for_evaluation{.routing = {.balance = gs::balance::bias(), .training = false}};
using evaluated = gs::program<layer<for_evaluation>, mesh, tokens, padding>;
static_assert(evaluated::plan.collectives() == 2 && evaluated::plan.count(op::random) == 0);

constexpr bool is_refused(const router& options, std::string_view names, std::initializer_list<int> values = {}) {
  return tracing::out_of_range("route", names, values,
                               [&](auto& b, auto& m) { nn::route(m, input(b, "GSM"), input(b, "GS"), options); });
}
constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
static_assert(is_refused({.jitter = -0.1}, ".jitter") && is_refused({.jitter = 1.5}, ".jitter") && is_refused({.jitter = nan}, ".jitter"));
static_assert(is_refused({.gumbel = -1}, ".gumbel") && is_refused({.gumbel = nan}, ".gumbel") && is_refused({.z_loss = -1}, ".z_loss"));
static_assert(is_refused({.gumbel = infinity}, ".gumbel") && is_refused({.z_loss = infinity}, ".z_loss"));
static_assert(is_refused({.scale = nan}, ".scale"));
static_assert(is_refused({.balance = gs::balance::bias(nan)}, ".balance.rate"));
static_assert(is_refused({.balance = gs::balance::bias(-1)}, ".balance.rate"));
static_assert(is_refused({.sets = {2, 3}}, ".sets.per_token, .sets.count", {3, 2}));
static_assert(is_refused({.sets = {0}}, ".sets.count", {0}) && is_refused({.sets = {2, -1}}, ".sets.per_token", {-1}));
static_assert(is_refused({.k = -1}, ".k", {-1}) && is_refused({.slots = {-1}}, ".slots.factor"));
static_assert(is_refused({.evaluation_slots = {-1}}, ".evaluation_slots.factor"));
static_assert(is_refused({.evaluation_slots = {2, 0, -8}}, ".evaluation_slots.multiple", {-8}));
// No option is ignored.
static_assert(is_refused({.sets = {.per_token = 2}}, ".sets.per_token, .sets.count", {2, 1}));
static_assert(is_refused({.evaluation_slots = {.factor = 0, .minimum = 4}}, ".evaluation_slots.minimum", {4}));
static_assert(is_refused({.evaluation_slots = {.factor = 0, .multiple = 4}}, ".evaluation_slots.multiple", {4}));
// If experts choose, no token has a second choice, and k is only the default of the slots.
template <class Options>
constexpr bool refuses(std::string_view words, Options options) {
  return tracing::conflicts("route", words, [&](auto& b, auto& m) { nn::route(m, input(b, "GSM"), input(b, "GS"), options(b)); });
}
constexpr bool refuses(std::string_view words, const router& options) {
  return refuses(words, [&](auto&) { return options; });
}
using gs::choice;
static_assert(refuses(".choice by_experts and .importance", [](auto& b) {
  return router{.choice = choice::by_experts, .importance = input(b, "GS")};
}));
static_assert(refuses(".scores and route", [](auto& b) { return router{.scores = input(b, "GSE")}; }));
static_assert(refuses(".choice by_experts, .slots and .k", {.k = 4, .slots = {2}, .choice = choice::by_experts}));
static_assert(refuses(".choice by_experts and .balance bias", {.choice = choice::by_experts, .balance = gs::balance::bias()}));
static_assert(refuses(".choice of a second expert and .k other than 2", {.k = 3, .choice = choice::random_second()}));
static_assert(!refuses(".choice of a second expert and .k other than 2", {.k = 2, .choice = choice::random_second()}));
static_assert(tracing::holds([](auto& b, auto& m) {
  nn::moe<"x">(m, input(b, "GSM"), input(b, "GS"), {.routing = {.k = 4, .choice = choice::by_experts}});
  nn::moe<"x">(m.scope(1), input(b, "GSM"), input(b, "GS"), {.routing = {.slots = {2}, .choice = choice::by_experts}});
  return true;
}));
// Faults of x and mask name the layer and the operand, not the verbs inside.
constexpr gs::diagnostic of_layer(std::string_view x, std::string_view mask, gs::dtype of_x = gs::dtype::f32,
                                  gs::dtype of_mask = gs::dtype::f32) {
  return tracing::problem_of([&](auto& b, auto& m) { nn::moe<"x">(m, input(b, x, of_x), input(b, mask, of_mask)); });
}
constexpr bool names(const gs::diagnostic& d, fault what, std::string_view subject, int first,
                     int second = gs::diagnostic::no_number, std::string_view index = {}) {
  return d.what == what && d.subject.view() == subject && d.first == first && d.second == second && d.word.view() == index;
}
static_assert(names(of_layer("SM", "GS"), fault::rank_mismatch, "x of moe", 3, 2));
static_assert(names(of_layer("GSM", "GSM"), fault::rank_mismatch, "mask of moe", 2, 3));
static_assert(names(of_layer("GSD", "GS"), fault::dims_differ, "moe", 0, 2, "M"));
static_assert(names(of_layer("GSM", "GT"), fault::dims_differ, "moe", 1, 1, "S"));
static_assert(names(of_layer("GSM", "SG"), fault::dims_differ, "moe", 1, 0, "G"));
static_assert(names(of_layer("GSM", "GS", gs::dtype::f64), fault::wrong_type, "moe", 0));
static_assert(names(of_layer("GSM", "GS", gs::dtype::f32, gs::dtype::i32), fault::wrong_type, "moe", 1));
// Layers compute in float or double, also in a model with another element type, and with products in bf16.
constexpr bool refuses_type(gs::dtype type, bool bf16_products) {
  const auto problem = [&](auto layer) {
    return tracing::problem_of([&](auto& b, auto& m) {
      b.options.bf16_products = bf16_products;
      layer(m.with_type(type), input(b, "GSM", type), input(b, "GS", type));
    });
  };
  return names(problem([](const auto& m, gs::symbol x, gs::symbol mask) { nn::moe<"x">(m, x, mask); }), fault::wrong_type, "moe", 0) &&
         names(problem([](const auto& m, gs::symbol x, gs::symbol mask) { nn::route(m, x, mask); }), fault::wrong_type, "route", 0);
}
static_assert(refuses_type(gs::dtype::bf16, false) && refuses_type(gs::dtype::bf16, true) && refuses_type(gs::dtype::f16, false));
static_assert(fails(fault::rank_mismatch, "x of route", [](auto& b, auto& m) { nn::route(m, input(b, "SM"), input(b, "GS")); }));
static_assert(fails(fault::dims_differ, "route", [](auto& b, auto& m) { nn::route(m, input(b, "GSM"), input(b, "GE")); }));

// The result of a refused call passes through every verb. A program that reads it fails with a fault without a sentence.
template <class F>
constexpr bool passes(F f) {
  return tracing::problem_of([&](gs::builder& b, auto& m) { f(m, input(b, "GSM"), gs::detail::refused(3.0)); }).what == fault::refused_call;
}
static_assert(passes([](auto& m, gs::symbol x, auto u) { nn::route(m, x, u), nn::route(m, u, x); }));
static_assert(passes([](auto& m, gs::symbol x, auto u) { nn::moe<"x">(m, x, u), nn::moe<"x">(m, u, x); }));
static_assert(passes([](auto& m, gs::symbol, auto u) { nn::update_bias(m, u, 0.1); }));
static_assert(passes([](auto& m, gs::symbol x, auto u) { nn::update_bias(m, nn::measure_balance(x, u).busiest, 0.1); }));
static_assert(passes([](auto& m, gs::symbol, auto u) { nn::update_bias(m, gs::top_k_gating(u).load, 0.1); }));
static_assert(passes([](auto& m, gs::symbol, auto u) { nn::update_bias(m, gs::chunk_of(gs::top_k_gating(u), 0, 2).load, 0.1); }));

}  // namespace
