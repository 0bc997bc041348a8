// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The verbs of cases, planned at run time, have the plans of the same calls at compile time. Therefore cases also test constant plans.
#include "../exec/same_plan.hpp"
#include "case_verbs.hpp"
#include "run_case.hpp"

#include <gshard/moe/layer/moe.hpp>

#include <doctest/doctest.h>

#include <set>
#include <span>
#include <string>
#include <vector>

namespace gs = gshard;
namespace gt = gshard::testing;
using gs::in, gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;
template <auto Model>
using program = gs::program<Model, mesh, in<"AB", P<"x", none>, double>, in<"BC", P<none, "x">, double>, in<"A", P<"x">, std::int32_t>,
                            in<"GSE", P<"x", none, none>, double>, gs::element<double>>;

std::vector<std::string> facts_of(const gs::plan_view& plan) {
  return same_plan::facts_of(plan, {{2}, {{'A', 4}, {'B', 6}, {'C', 3}, {'G', 2}, {'S', 3}, {'E', 4}}});
}

/// Plans an expression of cases over the inputs of `program`.
std::vector<std::string> facts_of_text(const std::string& text) {
  const cases::text_case c;
  const gt::traced t = gt::trace({{"AB"}, {"BC"}, {"A", gs::dtype::i32}, {"GSE"}},
                                 [&](const gs::parameter_scope& m, std::span<const gs::symbol> x) {
                                   cases::evaluator evaluate(m, c);
                                   const char* const names[]{"x", "y", "ids", "gates"};
                                   for (std::size_t i = 0; i < 4; ++i) evaluate.set(names[i], x[i]);
                                   return gs::list<gs::symbol>{evaluate(cases::case_parser(text).whole()).tensor};
                                 });
  gt::setting s{.mesh = {2}, .dims = {}, .layouts = {}};
  for (const std::int32_t v : t.free) s.layouts.push_back(gs::sharding::replicated(t.graph.at(v).rank()));
  for (const auto& [input, dim] : {std::pair{0, 0}, {1, 1}, {2, 0}, {3, 0}}) s.layouts[std::size_t(input)][dim].insert(0, 0);
  return facts_of(gt::plan(t, s).view());
}

struct twin {
  std::string text;
  std::vector<std::string> (*constant)();
};
#define TWIN(text, ...)                                                                                                            \
  twin {                                                                                                                           \
    text, [] {                                                                                                                     \
      return facts_of(program<[]([[maybe_unused]] auto& m, [[maybe_unused]] auto x, [[maybe_unused]] auto y,                       \
                                 [[maybe_unused]] auto ids, [[maybe_unused]] auto gates) { return __VA_ARGS__; }>::plan);          \
    }                                                                                                                              \
  }

const std::vector<twin> twins{
    TWIN("x + x", x + x),
    TWIN("x - x", x - x),
    TWIN("x * x", x * x),
    TWIN("x / x", x / x),
    TWIN("einsum(\"ab,bc->ac\", x, y)", gs::einsum<"ab,bc->ac">(x, y)),
    TWIN("broadcast(\"a,ab->ab\", sum(\"ab->a\", x), x)", gs::broadcast<"a,ab->ab">(gs::sum<"ab->a">(x), x)),
    TWIN("max(\"ab->b\", x)", gs::reduce_max<"ab->b">(x)),
    TWIN("min(\"ab->a\", x)", gs::reduce_min<"ab->a">(x)),
    TWIN("prod(\"ab->\", x)", gs::reduce_prod<"ab->">(x)),
    TWIN("mean(\"ab->b\", x)", gs::mean<"ab->b">(x)),
    TWIN("logsumexp(\"ab->b\", x)", gs::logsumexp<"ab->b">(x)),
    TWIN("argmax(\"ab->b\", x)", gs::argmax<"ab->b">(x)),
    TWIN("argmin(\"ab->a\", x)", gs::argmin<"ab->a">(x)),
    TWIN("tanh(x)", gs::map<[](auto v) { return gs::tanh(v); }>(x)),
    TWIN("maximum(x, x)", gs::map<[](auto v, auto w) { return gs::max(v, w); }>(x, x)),
    TWIN("relu(x)", gs::relu(x)),
    TWIN("select(less(x, x), x, x)", gs::select(gs::less(x, x), x, x)),
    TWIN("select(equal(x, x), x, x)", gs::select(gs::equal(x, x), x, x)),
    TWIN("cast(x, \"f32\")", gs::cast<float>(x)),
    TWIN("stop_gradient(x)", gs::stop_gradient(x)),
    TWIN("softmax(y)", gs::softmax(y)),
    TWIN("layer_norm(x, sum(\"ab->b\", x), sum(\"ab->b\", x))", gs::layer_norm(x, gs::sum<"ab->b">(x), gs::sum<"ab->b">(x))),
    TWIN("cross_entropy(x, ids, smoothing=0.125)", gs::cross_entropy(x, ids, 0.125)),
    TWIN("merge_dims(x, 0)", gs::merge_dims<0>(x)),
    TWIN("split_dim(x, 1, 3, 2)", gs::split_dim(x, 1, 3, 2)),
    TWIN("expand_dims(x, 1)", gs::expand_dims(x, 1)),
    TWIN("slice(x, 0, 1, 4, stride=2)", gs::slice(x, 0, 1, 4, 2)),
    TWIN("pad(x, 0, 1, 2, fill=0.5)", gs::pad(x, 0, 1, 2, 0, 0.5)),
    TWIN("reverse(x, 0)", gs::reverse(x, 0)),
    TWIN("roll(x, 0, 1)", gs::roll(x, 0, 1)),
    TWIN("concat([x, x], 0)", gs::concat({x, x}, 0)),
    TWIN("cumsum(x, dim=0, exclusive=1)", gs::cumsum(x, 0, true)),
    TWIN("sort(x, dim=0).ids", gs::sort(x, 0).ids),
    TWIN("top_k(x, 2, dim=0).values", gs::top_k(x, 2, 0).values),
    TWIN("gather(x, ids)", gs::gather(x, ids)),
    TWIN("scatter_add(x, ids, x)", gs::scatter_add(x, ids, x)),
    TWIN("dynamic_slice(x, 0, max(\"a->\", ids), 2)", gs::dynamic_slice(x, 0, gs::reduce_max<"a->">(ids), 2)),
    TWIN("dynamic_update_slice(x, x, 0, max(\"a->\", ids))", gs::dynamic_update_slice(x, x, 0, gs::reduce_max<"a->">(ids))),
    TWIN("iota(\"AB\", along=1)", gs::iota<"AB">(m, 1)),
    TWIN("one_hot(\"B\", ids)", gs::one_hot<"B", double>(ids)),
    TWIN("conv(\"XA,xB->XB\", x, y)", gs::conv<"XA,xB->XB">(x, y)),
    TWIN("sum_pool(x, [0, 2])", gs::sum_pool(x, {{0, 2}})),
    TWIN("mean_pool(x, [0, 2], stride=2)", gs::mean_pool(x, {{0, 2, {.stride = 2}}})),
    TWIN("max_pool(x, [0, 3], low=1, high=1)", gs::max_pool(x, {{0, 3, {.low = 1, .high = 1}}})),
    TWIN("min_pool(x, [1, 2])", gs::min_pool(x, {{1, 2}})),
    TWIN("uniform(\"AB\")", gs::uniform<"AB">(m)),
    TWIN("normal(\"AB\")", gs::normal<"AB">(m)),
    TWIN("dropout(x, 0.25)", gs::dropout(x, 0.25)),
    TWIN("attention(gates, gates, gates, causal=1)", gs::attention(gates, gates, gates, {.causal = true})),
    TWIN("top_k_gating(gates, k=2, slots=2).combine", gs::top_k_gating(gates, {.k = 2, .slots = {2}}).combine),
    TWIN("top_k_gating(gates, slots=2, choice=\"by_experts\", norm=\"off\").combine",
         gs::top_k_gating(gates, {.slots = {2}, .choice = gs::choice::by_experts, .norm = gs::gate_norm::off}).combine),
    TWIN("item(clip_by_global_norm([x, y], 2), 1)", gs::clip_by_global_norm(gs::list<gs::symbol>{x, y}, 2)[1]),
    TWIN("gradient(sum(softmax(x) * x), x)", gs::gradients(gs::sum(gs::softmax(x) * x), {x})[0]),
};

/// Collects the verbs of an expression.
void collect_verbs(const cases::expression& e, std::set<std::string>& to) {
  if (e.what == cases::expression::kind::call) to.insert(e.word);
  for (const cases::expression& p : e.parts) collect_verbs(p, to);
}

}  // namespace

TEST_CASE("cases: verbs have the same plan at run time as at compile time") {
  for (const twin& t : twins) {
    CAPTURE(t.text);
    CHECK(same_plan::difference(facts_of_text(t.text), t.constant()) == "");
  }
}

namespace {

inline constexpr auto training = [](auto& m, auto x, auto mask, auto rate) {
  const gs::nn::moe_result r = gs::nn::moe<"x">(m, x, mask, {.routing = {.slots = gs::capacity{1.5}}, .swiglu = true, .biases = true});
  const auto loss = gs::mean(gs::map<[](auto y, auto wanted) { return (y - wanted) * (y - wanted); }>(r.y, x));
  gs::adam{.clip_norm = 1}.minimize(m, m.objective(loss, 0.1), rate);
  return loss;
};

}  // namespace

TEST_CASE("cases: a training step has the same plan at run time as at compile time") {
  using step = gs::program<training, mesh, in<"GSM", P<"x", none, none>, double>, in<"GS", P<"x", none>, double>, in<"", void, double>,
                           gs::element<double>>;
  CHECK(same_plan::at_run_time<step>({{2}, {{'G', 4}, {'S', 6}, {'M', 5}, {'E', 4}, {'F', 3}}}) == "");
}

TEST_CASE("cases: verbs without a twin are named") {
  std::set<std::string> with_twin, without;
  for (const twin& t : twins) collect_verbs(cases::case_parser(t.text).whole(), with_twin);
  for (const auto& [name, verb] : cases::detail::verbs())
    if (!with_twin.contains(std::string(name))) without.insert(std::string(name));
  // Functions of map have the same plan. The twin of gradients is in gradient. The others call functions, or have no result.
  CHECK(without == std::set<std::string>{"abs", "adam", "exp", "gradients", "log", "minimum", "scan", "sqrt", "square"});
}
