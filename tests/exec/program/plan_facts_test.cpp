// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/program/plan_facts.hpp>

#include "../run_graph.hpp"

#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/ops/along/cumsum.hpp>
#include <gshard/ops/along/sort.hpp>
#include <gshard/ops/shards/per_shard.hpp>
#include <gshard/train/adam.hpp>

#include <doctest/doctest.h>

#include <cfenv>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace gs = gshard;

namespace {

std::vector<gs::fact> facts(const gs::plan_tables& plan, const run_graph::setting& s) {
  const gs::any_cluster on(plan.mesh, std::make_shared<gs::simulated>(s.mesh));
  const gs::plan_view view = plan.view();
  gs::detail::bound_plan bound(view, on);
  bound.bind(s.dims);
  std::vector<gs::fact> all;
  gs::detail::plan_facts(bound).add_to(all);
  return all;
}
bool has(const std::vector<gs::fact>& all, const std::string& what, const std::string& value) {
  for (const gs::fact& f : all)
    if (f.what == what) return f.value == value;
  return false;
}
/// The value of the first fact in which two lists differ.
std::string difference(const std::vector<gs::fact>& a, const std::vector<gs::fact>& b) {
  std::size_t i = 0;
  while (i < a.size() && i < b.size() && a[i].what == b[i].what && a[i].value == b[i].value) ++i;
  return i < a.size() ? a[i].what : i < b.size() ? b[i].what : "";
}

}  // namespace

TEST_CASE("permutations that differ in a pair differ in a fact about a window") {
  const auto of = [](const gs::device_pair* pairs) {
    const auto t = run_graph::trace({{"A"}}, [&](const gs::parameter_scope&, std::span<const gs::symbol> x) {
      return gs::list<gs::symbol>{gs::per_shard<"x", gs::P<"x">>(
          [&](gs::symbol s) { return gs::detail::emit_permute(s, "x", {pairs, 1}); }, gs::annotate<gs::P<"x">>(x[0]))};
    });
    run_graph::setting s{.mesh = {2}, .dims = {{'A', 4}}, .layouts = {}};
    for (const std::int32_t v : t.free) s.layouts.push_back(t.graph.at(v).layout);
    return facts(run_graph::plan(t, s), s);
  };
  constexpr gs::device_pair there{0, 1}, stay{0, 0}, back{1, 0};
  CHECK(difference(of(&there), of(&there)) == "");
  for (const gs::device_pair* other : {&stay, &back}) CHECK(difference(of(&there), of(other)).starts_with("window "));
}

TEST_CASE("plans that differ in anything differ in a fact about it") {
  const auto model = [](double start, auto f) {
    return run_graph::trace({{"AB"}, {"BC"}}, [=](const gs::parameter_scope& whole, std::span<const gs::symbol> x) {
      const gs::parameter_scope m(whole.owner(), gs::dtype::f32);
      const gs::symbol w = gs::cast<double>(m.param("w", "AC", gs::init::constant(start)));
      return gs::list<gs::symbol>{f(gs::einsum<"ab,bc->ac">(x[0], x[1]) + w)};
    });
  };
  const auto twice = [](gs::symbol x) { return gs::map<[](auto v) { return v * 2; }>(x); };
  const auto thrice = [](gs::symbol x) { return gs::map<[](auto v) { return v * 3; }>(x); };
  const auto traced = model(1, twice);
  const gs::sharding whole = gs::sharding::replicated(2);
  gs::sharding rows = whole;
  rows[0].push_back(0);
  const run_graph::setting s{.mesh = {2}, .dims = {{'A', 4}, {'B', 6}, {'C', 8}}, .layouts = {rows, whole, whole}};
  const auto all = facts(run_graph::plan(traced, s), s);
  CHECK(difference(all, facts(run_graph::plan(traced, s), s)) == "");
  CHECK(has(all, "the axes of a program's mesh", "x"));
  CHECK(has(all, "the extent of dim 'B'", "6"));
  CHECK(has(all, "the initial values of parameter \"w\"", "constant 1"));

  run_graph::setting layouts = s, extents = s;
  layouts.layouts = {whole, rows, whole};
  CHECK(difference(all, facts(run_graph::plan(traced, layouts), layouts)) == "input 0");
  extents.dims.set('C', 9);
  CHECK(difference(all, facts(run_graph::plan(traced, extents), extents)) == "the extent of dim 'C'");
  CHECK(difference(all, facts(run_graph::plan(model(2, twice), s), s)) == "the initial values of parameter \"w\"");
  CHECK(difference(all, facts(run_graph::plan(model(1, thrice), s), s)).starts_with("the values of the function of step "));

  gs::plan_tables plan = run_graph::plan(traced, s);
  const std::string step = "step " + std::to_string(plan.steps.size() - 1) + " of a program";
  plan.steps.back().attr.factor += 1;
  CHECK(difference(all, facts(plan, s)) == step);
  plan = run_graph::plan(traced, s);
  plan.steps.back().attr.dim += 1;
  CHECK(difference(all, facts(plan, s)) == step);
  const auto facts_with = [&](const gs::packed_attributes& own) {
    gs::plan_tables with = run_graph::plan(traced, s);
    with.steps.back().attr.own = own;
    return facts(with, s);
  };
  CHECK(difference(facts_with(gs::adam_attributes{.beta1 = 0.9}), facts_with(gs::adam_attributes{.beta2 = 0.9})) == step);
  CHECK(difference(facts_with(gs::cumsum_attributes{.exclusive = true}), facts_with(gs::cumsum_attributes{.reverse = true})) == step);
  CHECK(difference(facts_with(gs::sort_attributes{.count = 1}), facts_with(gs::sort_attributes{.count = 2})) == step);
  plan = run_graph::plan(traced, s);
  plan.steps.back().place = {"elsewhere.cpp", 3};
  CHECK(difference(all, facts(plan, s)) == "");
  plan.mesh.names[0] = gs::axis_name("y");
  CHECK(difference(all, [&] {
          const gs::any_cluster on(plan.mesh, std::make_shared<gs::simulated>(s.mesh));
          return facts(plan, s);
        }()) == "the axes of a program's mesh");
}

TEST_CASE("functions are compared by their values at sample points, whatever they do to the application's floating point") {
  const auto values = [](const gs::pointwise& f, int n) { return gs::detail::values_at_samples(f, n); };
  constexpr const auto& twice = gs::pointwise_of<[](auto v) { return v + v; }, 1>;
  constexpr const auto& double_it = gs::pointwise_of<[](auto v) { return 2 * v; }, 1>;
  constexpr const auto& steeper = gs::pointwise_of<[](auto v) { return 2.001 * v; }, 1>;
  CHECK(values(twice, 1) == values(double_it, 1));
  CHECK(values(twice, 1) != values(steeper, 1));
  constexpr const auto& minus = gs::pointwise_of<[](auto a, auto b) { return a - b; }, 2>;
  constexpr const auto& turned = gs::pointwise_of<[](auto a, auto b) { return b - a; }, 2>;
  CHECK(values(minus, 2) != values(turned, 2));
  CHECK(values(gs::pointwise_subtract, 2) == values(minus, 2));

  constexpr const auto& pole = gs::pointwise_of<[](auto v) { return 1 / v + gs::log(v); }, 1>;
  std::feclearexcept(FE_ALL_EXCEPT);
  CHECK(values(pole, 1).find("nan") != std::string::npos);
  CHECK(std::fetestexcept(FE_INVALID | FE_DIVBYZERO) == 0);
  constexpr const auto& throws = gs::pointwise_of<[](auto v) { return v < 2 ? v : throw std::runtime_error("too large"); }, 1>;
  CHECK(values(throws, 1) == "an exception: too large");
}
