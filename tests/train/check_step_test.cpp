// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/check/check_finite.hpp>
#include <gshard/train/check_step.hpp>

#include "not_finite_step.hpp"

namespace gs = gshard;
using not_finite_step::program;

namespace {

const std::vector<std::vector<int>> meshes_of_checks{{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 1}, {2, 3}};

template <class F>
void on_every_mesh(F check) {
  for (const std::vector<int>& extents : meshes_of_checks) {
    CAPTURE(extents[0]);
    CAPTURE(extents[1]);
    check(gs::simulate<not_finite_step::mesh>(extents));
  }
}

// Terms of the loss that the program returns are checked as well. Other outputs are not checked.
inline constexpr auto terms = [](auto& m, auto x, auto rate) {
  const auto w = m.param("w", "A", gs::init::constant(1));
  const auto first = gs::sum(w * x), second = gs::sum(w * w), other = gs::sum(x);
  m.loss(second);
  gs::adam{}.minimize(m, m.objective(first, 0.5), rate);
  return std::tuple{first, second, other};
};
constexpr gs::plan_view of_terms = gs::program<terms, gs::mesh<gs::axis<"x">>, gs::in<"A">, gs::in<"">>::plan;
static_assert(of_terms.outputs[0].is_loss && of_terms.outputs[1].is_loss && !of_terms.outputs[2].is_loss);

}  // namespace

namespace {

// A skipped step updates no variable, neither before nor after the optimizer: select(skipped, old, next).
inline constexpr auto with_variables = [](auto& m, auto x, auto rate) {
  auto w = m.param("w", "A", gs::init::zeros());
  auto before = m.variable("before", "A", gs::init::zeros()), after = m.variable("after", "", gs::init::zeros(), gs::dtype::i32);
  m.update(before, before + x);
  auto loss = gs::sum(w * x);
  gs::adam{.if_not_finite = gs::not_finite::skip}.minimize(m, loss, rate);
  m.update(after, after + 1);
  return loss;
};
constexpr bool keeps_old_value(const gs::plan_view& p, const char* name) {
  const gs::parameter& v = *p.find(name);
  for (const gs::node& n : p.steps)
    if (n.outputs > 0 && n.output() == v.updated)
      return n.kind == gs::op::map && n.inputs == 3 && n.input(1) == v.value &&
             n.attr.function->own == gs::detail::arithmetic::number_of<gs::detail::arithmetic::choose>;
  return false;
}
using variables = gs::program<with_variables, gs::mesh<gs::axis<"x">>, gs::in<"A">, gs::in<"">>;
static_assert(keeps_old_value(variables::plan, "before") && keeps_old_value(variables::plan, "after"));

}  // namespace

TEST_CASE("not_finite: the checks of the default change no plan; those of skip add one all_reduce of a number, and nothing else") {
  const auto check = []<bool Factored>() {
    const gs::plan_view stop = planned::plan_of<program<gs::not_finite::stop, Factored>>(),
                        skip = planned::plan_of<program<gs::not_finite::skip, Factored>>(),
                        ignore = planned::plan_of<program<gs::not_finite::ignore, Factored>>();
    CHECK(stop.steps.size() == ignore.steps.size());
    CHECK(stop.collectives() == ignore.collectives());
    CHECK(skip.collectives() == ignore.collectives() + 1);
    CHECK(skip.count(gs::op::count_not_finite) == 3);
    CHECK(stop.count(gs::op::count_not_finite) == 0);
    CHECK(stop.outputs[0].is_loss);
    CHECK(!ignore.outputs[0].is_loss);
    CHECK(!skip.outputs[0].is_loss);
  };
  check.operator()<false>();
  check.operator()<true>();
  CHECK(same_plan::at_run_time<program<gs::not_finite::skip, true>>({{2, 2}, not_finite_step::sizes}) == "");
}

TEST_CASE("not_finite::stop: the error names gradient, parameter or loss, device, step and element") {
  on_every_mesh(not_finite_step::check_stop<false>);
  on_every_mesh(not_finite_step::check_stop<true>);
}

TEST_CASE("not_finite::skip: a batch that is not finite leaves no trace") {
  on_every_mesh(not_finite_step::check_skip<false>);
  on_every_mesh(not_finite_step::check_skip<true>);
}

TEST_CASE("not_finite: while all numbers are finite, policies differ in nothing") {
  on_every_mesh(not_finite_step::check_equal_policies<false>);
  on_every_mesh(not_finite_step::check_equal_policies<true>);
}

TEST_CASE("not_finite: a parameter that something else spoilt") { on_every_mesh(not_finite_step::check_spoilt_parameter); }
