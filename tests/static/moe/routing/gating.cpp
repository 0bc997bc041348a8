// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/moe/routing/gating.hpp>
#include <gshard/moe/routing/routing.hpp>

#include "../../tracing.hpp"

#include <algorithm>
#include <limits>

namespace gs = gshard;
namespace op = gs::op;
using gs::builder, gs::dtype, gs::fault, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto&) {
  const gs::gating_result r = gs::top2_gating(input(b, "GSE"), gs::capacity{1.25});
  const gs::dim& places = b.program.dims[std::size_t(r.combine.get().dims[3])];
  return has_dims(r.combine, "GSEC") && has_dims(r.dispatch, "GSEC") && has_dims(r.aux, "") &&
         has_dims(r.load, "GE") && has_dims(r.overflow, "G") && has_dims(r.demand, "GE") && places.number == 5 && places.divisor == 4;
}));
// Groups may be sharded over the mesh, tokens and experts may not: a group is routed as a whole.
static_assert(tracing::holds([](builder& b, auto&) {
  gs::top2_gating(input(b, "GSE"));
  for (const gs::node& n : b.program.nodes)
    if (n.kind == op::top_k_gating)
      return !n.rule.is_blocked(n.rule.in[0][0]) && n.rule.is_blocked(n.rule.in[0][1]) &&
             n.rule.is_blocked(n.rule.in[0][2]);
  return false;
}));
// Two layers draw different random numbers; the policy of the second expert is kept.
static_assert(tracing::holds([](builder& b, auto&) {
  gs::top_k_gating(input(b, "GSE"), {.k = 2});
  gs::top2_gating(input(b, "GSE"), input(b, "GS"));
  const gs::node *first = nullptr, *last = nullptr;
  for (const gs::node& n : b.program.nodes)
    if (n.kind == op::top_k_gating) (first ? last : first) = &n;
  return first->attr.key != last->attr.key &&
         gs::own<gs::gating_attributes>(*first).second == gs::second_expert::always &&
         gs::own<gs::gating_attributes>(*last).second == gs::second_expert::random && first->inputs == 1 && last->inputs == 2;
}));

static_assert(fails(fault::rank_mismatch, "top2_gating",
                    [](builder& b, auto&) { gs::top2_gating(input(b, "SE")); }));
// Operands in options have names, and errors have the dim of the operand.
template <class F>
constexpr bool differs(std::string_view verb, std::string_view operand, int dim, F f) {
  const gs::diagnostic d = tracing::problem_of(f);
  return d.what == fault::dims_differ && d.subject.view() == verb && d.word.view() == operand && d.first == gs::diagnostic::no_number &&
         d.second == dim;
}
static_assert(differs("top2_gating", "mask", 1, [](builder& b, auto&) { gs::top2_gating(input(b, "GSE"), input(b, "GE")); }));
static_assert(differs("top_k_gating", ".scores", 2, [](builder& b, auto&) {
  gs::top_k_gating(input(b, "GSE"), input(b, "GS"), {.scores = input(b, "GSF")});
}));
static_assert(differs("top_k_gating", ".importance", 1, [](builder& b, auto&) {
  gs::top_k_gating(input(b, "GSE"), {.importance = input(b, "GT")});
}));
static_assert(fails(fault::rank_mismatch, "mask of top2_gating",
                    [](builder& b, auto&) { gs::top2_gating(input(b, "GSE"), input(b, "G")); }));
// Options that the verb does not read are refused.
constexpr bool conflicts(std::string_view words, const gs::routing_options& o) {
  return tracing::conflicts("top_k_gating", words, [&](builder& b, auto&) { gs::top_k_gating(input(b, "GSE"), o); });
}
static_assert(conflicts(".choice of a second expert and .k other than 2", {.k = 3, .choice = gs::choice::random_second()}));
static_assert(conflicts(".choice of a second expert and .k other than 2", {.k = 1, .choice = gs::choice::sampled_second}));
static_assert(conflicts("gates and .score", {.score = gs::gate_score::sigmoid}));
static_assert(conflicts("gates and .balance", {.balance = gs::balance::off}) && conflicts("gates and .sets", {.sets = {.count = 2}}));
static_assert(conflicts("gates and .jitter", {.jitter = 0.1}) && conflicts("gates and .gumbel", {.gumbel = 1}));
static_assert(conflicts("gates and .z_loss", {.z_loss = 1}));
// top_k_gating: k choices. By default k times as many slots as tokens.
static_assert(tracing::holds([](builder& b, auto&) {
  const gs::gating_result r = gs::top_k_gating(input(b, "GSE"), {.k = 8});
  const gs::gating_result few = gs::top_k_gating(input(b, "GSE"), input(b, "GS"), {.k = 8, .slots = gs::capacity{1.5}});
  const gs::dim& places = b.program.dims[std::size_t(r.combine.get().dims[3])];
  const gs::dim& less = b.program.dims[std::size_t(few.combine.get().dims[3])];
  const gs::detail::one_hot_parts parts = gs::detail::one_hot_of(r.combine);
  return has_dims(r.combine, "GSEC") && places.number == 8 && places.divisor == 1 && less.number == 3 && less.divisor == 2 &&
         b.known_extent(parts.slot.get().dims[2]) == 8 && b.known_extent(parts.weight.get().dims[2]) == 8;
}));
// A minimum and a multiple apply after the factor, including k. Without them, no dim is added.
static_assert(tracing::holds([](builder& b, auto&) {
  const gs::gating_result r = gs::top_k_gating(input(b, "GSE"), {.k = 4, .slots = {.factor = 0, .minimum = 6, .multiple = 8}});
  const gs::dim& places = b.program.dims[std::size_t(r.combine.get().dims[3])];
  const gs::dim& exact = b.program.dims[places.first];
  return places.what == gs::dim::kind::rounded && places.number == 6 && places.divisor == 8 && exact.number == 4;
}));
constexpr bool refuses(const gs::capacity& c, std::string_view option, std::initializer_list<int> values) {
  return tracing::out_of_range("top_k_gating", option, values, [=](builder& b, auto&) {
    gs::top_k_gating(input(b, "GSE"), {.slots = c});
  });
}
static_assert(refuses({-1}, ".slots.factor", {}) && refuses({std::numeric_limits<double>::quiet_NaN()}, ".slots.factor", {}));
static_assert(refuses({2, -1}, ".slots.minimum", {-1}) && refuses({2, 0, 0}, ".slots.multiple", {0}));
static_assert(tracing::out_of_range("top_k_gating", ".scale", {}, [](builder& b, auto&) {
  gs::top_k_gating(input(b, "GSE"), {.scale = std::numeric_limits<double>::quiet_NaN()});
}));
static_assert(tracing::out_of_range("top_k_gating", ".k", {-1}, [](builder& b, auto&) { gs::top_k_gating(input(b, "GSE"), {.k = -1}); }));
static_assert(tracing::out_of_range("top_k_gating", ".k, experts", {9, 8}, [](builder& b, auto&) {
  b.options.known.set('E', 8);
  gs::top_k_gating(input(b, "GSE"), {.k = 9});
}));
static_assert(fails(fault::rank_mismatch, "top_k_gating", [](builder& b, auto&) { gs::top_k_gating(input(b, "SE")); }));

// Optional operands, in their order, with a mask and without one.
static_assert(tracing::holds([](builder& b, auto&) {
  gs::top_k_gating(input(b, "GSE"), {.importance = input(b, "GS"), .scores = input(b, "GSE")});
  const gs::node& n =
      *std::find_if(b.program.nodes.begin(), b.program.nodes.end(), [](const auto& m) { return m.kind == op::top_k_gating; });
  using which = gs::detail::route::gating_input;
  using gs::detail::route::gating_operand;
  const auto a = gs::own<gs::gating_attributes>(n);
  return n.inputs == 3 && gating_operand(a, which::padding) == -1 && gating_operand(a, which::scores) == 1 &&
         gating_operand(a, which::importance) == 2 && gating_operand(a, which::scores, 4) == 4;
}));
// Slots for all tokens; experts choose.
static_assert(tracing::holds([](builder& b, auto&) {
  const gs::gating_result all = gs::top_k_gating(input(b, "GSE"), {.slots = gs::capacity::unlimited()});
  const gs::gating_result r = gs::top_k_gating(input(b, "GSE"), input(b, "GS"), {.choice = gs::choice::by_experts});
  return has_dims(all.combine, "GSES") && has_dims(r.combine, "GSEC") && has_dims(gs::detail::one_hot_of(r.combine).slot, "GSE");
}));
static_assert(fails(fault::rank_mismatch, ".scores of top_k_gating",
                    [](builder& b, auto&) { gs::top_k_gating(input(b, "GSE"), {.scores = input(b, "GS")}); }));
static_assert(tracing::wrong_type("top_k_gating", ".scores", "f64", "f32",
                                  [](builder& b, auto&) { gs::top_k_gating(input(b, "GSE"), {.scores = input(b, "GSE", dtype::f64)}); }));
static_assert(tracing::out_of_range("top_k_gating", ".choice.threshold", {},
                                    [](builder& b, auto&) { gs::top_k_gating(input(b, "GSE"), {.choice = gs::choice::second_above(0)}); }));
static_assert(tracing::out_of_range("top_k_gating", ".choice.threshold", {}, [](builder& b, auto&) {
  gs::top_k_gating(input(b, "GSE"), {.choice = gs::choice::random_second(std::numeric_limits<double>::quiet_NaN())});
}));

static_assert([] {
  builder b;
  b.fail(fault::unknown_axis, "w");
  const gs::gating_result r = gs::top2_gating(b.nothing());
  return r.combine.id < 0 && r.dispatch.id < 0 && r.aux.id < 0 && r.load.id < 0 && r.overflow.id < 0 && r.demand.id < 0;
}());

}  // namespace
