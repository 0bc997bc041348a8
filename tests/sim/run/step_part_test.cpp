// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/run/step_part.hpp>

#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include "plan_run/translation_model.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string_view>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::none, gs::P;
using part = gs::step_part;

namespace {

gs::plan_tables model(bool one_hot) {
  gs::mesh_shape mesh;
  mesh.push_back("expert", gs::dynamic);
  plan_run::translation_model m;
  m.layers = 4;
  m.one_hot_products = one_hot;
  return plan_run::plan_of(m, mesh);
}
/// The number of steps of a part, kind and number of operands.
int count(const gs::plan_tables& p, part of, gs::op_ref kind, int inputs) {
  const std::vector<part> parts = gs::parts_of(p.view());
  int n = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) n += parts[i] == of && p.steps[i].kind == kind && p.steps[i].inputs == inputs;
  return n;
}

}  // namespace

TEST_CASE("parts: the steps of a Transformer with MoE layers") {
  // Four layers. Two are in the decoder and attend twice. Every second one is a mixture of experts.
  for (const bool one_hot : {true, false}) {
    CAPTURE(one_hot);
    const gs::plan_tables p = model(one_hot);
    REQUIRE(!p.problem);
    CHECK(count(p, part::attention, op::softmax, 1) == 6);
    CHECK(count(p, part::attention, op::einsum, 2) == 6 * 6 * 3);  // each product has two gradients
    CHECK(count(p, part::feed_forward, op::einsum, 2) == 2 * 2 * 3);
    CHECK(count(p, part::moe_feed_forward, op::einsum, 2) == 2 * 2 * 3);
    CHECK(count(p, part::gate_other, op::top_k_gating, 2) == 2);
    CHECK(count(p, part::gate_other, op::softmax, 1) == 2);
    CHECK(count(p, part::dispatch_combine, op::all_to_all, 1) == 2 * 4);
    CHECK(count(p, part::gate_einsum, op::dispatch, 2) == (one_hot ? 0 : 2));
    CHECK(count(p, part::gate_einsum, op::einsum, 2) == (one_hot ? 2 * (3 + 2 + 3) : 2 * 3));  // the mask has no gradient
    const std::vector<part> parts = gs::parts_of(p.view());
    int gradients = 0, statistics = 0, others = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (p.steps[i].kind != op::all_reduce) continue;
      const gs::node& maker = p.steps[std::size_t(p.values[std::size_t(p.steps[i].input(0))].producer)];
      const bool of_optimizer = maker.place.scope && std::string_view(maker.place.scope) == "optimizer";
      CHECK(parts[i] == (maker.place.gradient ? part::all_reduce : of_optimizer ? part::optimizer : part::other));
      (maker.place.gradient ? gradients : of_optimizer ? statistics : others)++;
    }
    CHECK(gradients > 0);
    CHECK(statistics > 0);  // about weights that are sharded by experts
    CHECK(others > 0);      // about the loss
  }
}

TEST_CASE("parts: a sum over a model's axis is of the part whose product it completes") {
  gs::mesh_shape mesh;
  mesh.push_back("expert", 2);
  mesh.push_back("model", 2);
  plan_run::translation_model m;
  m.layers = 4;
  const gs::plan_tables p = plan_run::plan_of(m, mesh);
  REQUIRE(!p.problem);
  const std::vector<part> parts = gs::parts_of(p.view());
  int attention = 0, feed_forward = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (p.steps[i].kind != op::all_reduce || p.steps[i].place.gradient) continue;
    attention += parts[i] == part::attention;
    feed_forward += parts[i] == part::feed_forward;
  }
  CHECK(attention >= 6);
  CHECK(feed_forward >= 2);
}

TEST_CASE("parts: without a named scope, of no part") {
  constexpr auto product = [](auto&, auto x, auto w) { return gs::annotate<P<none, none>>(gs::einsum<"AB,BC->AC">(x, w)); };
  using program = gs::program<product, gs::mesh<gs::axis<"x">>, gs::in<"AB", P<none, "x">>, gs::in<"BC", P<"x", none>>>;
  for (const part p : gs::parts_of(program::plan)) CHECK(p == part::other);
}

TEST_CASE("parts: a user's named scope, of its gradients and of the collectives that serve it; the innermost counts") {
  constexpr auto model = [](auto& m, auto x, auto rate) {
    const gs::named_scope outer(m, "mine");
    const auto w = m.param("w", "BC", P<"x", none>{}, gs::init::fan_in("B"));
    const auto h = [&] {
      const gs::named_scope inner(m, "feed-forward");
      return gs::einsum<"AB,BC->AC">(x, w);
    }();
    const auto loss = gs::sum(gs::annotate<P<none, none>>(h) * h);
    gs::adam{}.minimize(m, loss, rate);
    return loss;
  };
  using program = gs::program<model, gs::mesh<gs::axis<"x">>, gs::in<"AB", P<none, "x">>, gs::in<"">>;
  const std::vector<part> parts = gs::parts_of(program::plan);
  int collectives = 0, products = 0, updates = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const gs::node& n = program::plan.steps[i];
    products += n.kind == op::einsum && n.inputs == 2 && parts[i] == part::feed_forward;
    collectives += n.kind == op::all_reduce && !n.place.gradient && parts[i] == part::feed_forward;
    updates += n.kind == op::adam && parts[i] == part::optimizer;
  }
  CHECK(products == 2);
  CHECK(collectives == 1);
  CHECK(updates == 1);
}
