// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The order in which plans update parameters. static/core/schedule/update_order.cpp has two plans as constants.
#include "updated_layers.hpp"

#include <gshard/train/adam.hpp>
#include <gshard/train/gradient_wire.hpp>

#include "../../exec/planner.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gs = gshard;
using updated_layers::first_before, updated_layers::layers, updated_layers::mesh, updated_layers::one_layer,
    updated_layers::reads_are_of_what_was_meant;

namespace {

/// The gradient looks up the same ids again. This lookup cannot fail, because the first one has not.
inline constexpr auto lookup_step = [](auto& m, auto x, auto ids, auto rate) {
  const auto table = m.param("table", "VM", gs::init::fan_in("M"));
  gs::symbol y = x + gs::gather(table, ids);
  for (int i = 0; i < 12; ++i) y = one_layer(m.scope(i), y);
  const auto loss = gs::sum(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using lookup = gs::program<lookup_step, mesh, gs::in<"BM", gs::P<"data", gs::none>>, gs::in<"B", gs::P<"data">, std::int32_t>, gs::in<"">>;

/// The number of steps between the first step of one kind and the next step of another.
int steps_between(const gs::plan_view& plan, gs::op_ref first, gs::op_ref next) {
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    for (std::size_t j = i + 1; plan.steps[i].kind == first && j < plan.steps.size(); ++j)
      if (plan.steps[j].kind == next) return int(j - i);
  return -1;
}

}  // namespace

TEST_CASE("update_order: updates of the last layers come before the first gradients, if there are two buckets") {
  const gs::plan_view plan = planned::plan_of<layers<20>>();
  CHECK(plan.count(gs::op::adam) == 40);
  CHECK(first_before(plan, gs::op::adam, gs::op::einsum) >= 0);
  CHECK(reads_are_of_what_was_meant(plan));
  CHECK(first_before(planned::plan_of<layers<7>>(), gs::op::adam, gs::op::einsum) == -1);  // fewer than two buckets
}

TEST_CASE("update_order: gradients are rounded where they are computed, whether or not with feedback, and updated in buckets as ever") {
  using enum gs::gradient_wire;
  const gs::plan_view plan = planned::plan_of<layers<20>>(), fed_back = planned::plan_of<layers<20, bf16_with_feedback>>(),
                      rounded = planned::plan_of<layers<20, bf16>>();
  CHECK(fed_back.count(gs::op::adam) == 40);
  CHECK(fed_back.count(gs::op::feedback) == 40);
  CHECK(first_before(fed_back, gs::op::feedback, gs::op::adam) >= 0);
  CHECK(first_before(fed_back, gs::op::adam, gs::op::einsum) >= 0);
  CHECK(steps_between(fed_back, gs::op::feedback, gs::op::cast) == 1);
  CHECK(steps_between(fed_back, gs::op::feedback, gs::op::adam) > 10);  // the sum of the first gradient overlaps with others
  CHECK(reads_are_of_what_was_meant(fed_back));
  CHECK(rounded.count(gs::op::all_reduce) == plan.count(gs::op::all_reduce));  // as many combined sums as in float
  CHECK(fed_back.count(gs::op::all_reduce) == plan.count(gs::op::all_reduce));
  CHECK(steps_between(rounded, gs::op::cast, gs::op::adam) > 10);
}

TEST_CASE("update_order: ids that are looked up again in the gradient do not delay updates") {
  const gs::plan_view plan = planned::plan_of<lookup>();
  CHECK(plan.count(gs::op::adam) == 25);
  CHECK(first_before(plan, gs::op::adam, gs::op::einsum) >= 0);
  CHECK(reads_are_of_what_was_meant(plan));
}

namespace {

// Master values of weights in half precision are computed immediately before the update, and rounded immediately after it. Therefore not
// all of them exist at once.
inline constexpr auto half_precision_step = [](auto& m, auto x, auto rate) {
  gs::symbol y = x;
  for (int i = 0; i < 30; ++i)
    y = gs::relu(gs::einsum<"BM,MM->BM">(y, gs::cast<float>(m.scope(i).param("w", "MM", gs::init::fan_in("M"), gs::dtype::bf16))));
  const auto loss = gs::sum(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using half_precision = gs::program<half_precision_step, mesh, gs::in<"BM", gs::P<"data", gs::none>>, gs::in<"">>;
/// The largest number of steps between an update and the steps that compute its master value and its rounded result.
int widest_update(const gs::plan_view& plan) {
  int widest = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const gs::node& u = plan.steps[i];
    if (u.kind != gs::op::adam) continue;
    widest = std::max(widest, int(i) - int(plan.at(u.input(0)).producer));
    for (std::size_t j = i + 1; j < plan.steps.size(); ++j)
      for (int k = 0; k < plan.steps[j].inputs; ++k)
        if (plan.steps[j].input(k) == u.output(0)) widest = std::max(widest, int(j - i));
  }
  return widest;
}

}  // namespace

TEST_CASE("update_order: master values of weights in half precision are made where they are updated") {
  const gs::plan_view plan = planned::plan_of<half_precision>();
  CHECK(plan.count(gs::op::adam) == 30);
  CHECK(reads_are_of_what_was_meant(plan));
  CHECK(first_before(plan, gs::op::adam, gs::op::einsum) >= 0);  // as for weights in float
  CHECK(widest_update(plan) <= 4);
}

namespace {

/// The last step of a kind.
int last_of(const gs::plan_view& plan, gs::op_ref kind) {
  int last = -1;
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    if (plan.steps[i].kind == kind) last = int(i);
  return last;
}
// Averages of updated weights read them in float. They are not computed next to the updates, as all float copies would exist at once.
inline constexpr auto averaging_step = [](auto& m, auto x, auto rate) {
  const auto loss = half_precision_step(m, x, rate);
  for (int i = 0; i < 30; ++i) {
    const auto w = m.scope(i).param("w", "MM", gs::init::fan_in("M"), gs::dtype::bf16);
    const auto average = m.scope(i).variable("average", "MM", gs::init::zeros());
    m.update(average, 0.75 * average + 0.25 * gs::cast<float>(m.updated(w)));
  }
  return loss;
};
using averaging = gs::program<averaging_step, mesh, gs::in<"BM", gs::P<"data", gs::none>>, gs::in<"">>;
int first_of(const gs::plan_view& plan, gs::op_ref kind, int from) {
  for (std::size_t i = std::size_t(from); i < plan.steps.size(); ++i)
    if (plan.steps[i].kind == kind) return int(i);
  return -1;
}

}  // namespace

TEST_CASE("update_order: averages that read updated weights in float do not run next to the updates") {
  const gs::plan_view plan = planned::plan_of<averaging>();
  CHECK(first_before(plan, gs::op::adam, gs::op::einsum) >= 0);
  CHECK(first_of(plan, gs::op::scale, last_of(plan, gs::op::einsum)) > last_of(plan, gs::op::adam));
  CHECK(reads_are_of_what_was_meant(plan));
}
