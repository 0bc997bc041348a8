// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/comm/simulator/step_part.hpp>

#include <gshard/nn/translation_model.hpp>
#include <gshard/plan.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace gs = gshard;
using gs::none, gs::op, gs::P;
using part = gs::step_part;

namespace {

gs::plan_tables model(bool one_hot) {
  gs::mesh_shape mesh;
  mesh.push_back("expert", gs::dynamic);
  gs::nn::translation_model m;
  m.layers = 4;
  m.one_hot_products = one_hot;
  return gs::nn::plan_of(m, mesh);
}
/// Steps of a part, of a kind with so many operands.
int count(const gs::plan_tables& p, part of, op kind, int inputs) {
  const std::vector<part> parts = gs::parts_of(p.view());
  int n = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) n += parts[i] == of && p.steps[i].kind == kind && p.steps[i].inputs == inputs;
  return n;
}

}  // namespace

TEST_CASE("parts: the steps of a Transformer with MoE layers") {
  // Four layers, of which two are in the decoder and attend twice; every second is a mixture of experts.
  for (const bool one_hot : {true, false}) {
    CAPTURE(one_hot);
    const gs::plan_tables p = model(one_hot);
    REQUIRE(!p.problem);
    CHECK(count(p, part::attention, op::softmax, 1) == 6);
    CHECK(count(p, part::attention, op::einsum, 2) == 6 * 6 * 3);  // each product has two gradients
    CHECK(count(p, part::feed_forward, op::einsum, 2) == 2 * 2 * 3);
    CHECK(count(p, part::moe_feed_forward, op::einsum, 2) == 2 * 2 * 3);
    CHECK(count(p, part::gate_other, op::top2_gating, 2) == 2);
    CHECK(count(p, part::gate_other, op::softmax, 1) == 2);
    CHECK(count(p, part::dispatch_combine, op::all_to_all, 1) == 2 * 4);
    CHECK(count(p, part::gate_einsum, op::dispatch, 2) == (one_hot ? 0 : 2));
    CHECK(count(p, part::gate_einsum, op::einsum, 2) == (one_hot ? 2 * (3 + 2 + 3) : 2 * 3));  // the mask has no gradient
    const std::vector<part> parts = gs::parts_of(p.view());
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (p.steps[i].kind == op::all_reduce) CHECK(parts[i] == part::all_reduce);
  }
}

TEST_CASE("parts: what no header of the library made is of no part") {
  constexpr auto product = [](auto&, auto x, auto w) { return gs::annotate<P<none, none>>(gs::einsum<"AB,BC->AC">(x, w)); };
  using program = gs::program<product, gs::mesh<gs::axis<"x">>, gs::in<"AB", P<none, "x">>, gs::in<"BC", P<"x", none>>>;
  for (std::size_t i = 0; i < program::plan.steps.size(); ++i)
    CHECK(gs::parts_of(program::plan)[i] == (program::plan.steps[i].kind == op::all_reduce ? part::all_reduce : part::other));
}
