// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/runtime/runtime_program.hpp>

#include <gshard/gshard.hpp>
#include <gshard/sim/report/describe.hpp>
#include <gshard/sim/search/shard_search.hpp>

#include "../complaint.hpp"
#include "moe_layer.hpp"

#include <doctest/doctest.h>

#include <string>
#include <tuple>
#include <vector>

namespace gs = gshard;
using gs::in;

namespace {

using mesh = gs::mesh<gs::axis<"data", 2>, gs::axis<"expert">>;

inline constexpr auto training = [](auto& m, auto x, auto target, auto rate) {
  const gs::remat part(m, gs::remat_policy::products);
  auto error = moe_layer(m, x) - target;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
inline constexpr auto two_results = [](auto&, auto a, auto b) { return std::tuple{gs::einsum<"BM,MH->BH">(a, b), gs::sort(a, 1).values}; };
inline constexpr auto no_input = [](auto& m) { return m.param("w", "M", gs::init::zeros()) * 2.0; };

template <class Program>
void check_same(const gs::runtime_program& program) {
  CHECK(gs::describe(program.plan()) == gs::describe(Program::plan));
  CHECK(program.plan().lifetimes.size() == Program::plan.lifetimes.size());
}

template <class Model>
std::string fault_of(const Model& model, const gs::program_options& options = {}) {
  return complaint([&] { gs::runtime_program program(model, "data=2,expert", {"f32[B@data,M]"}, options); });
}

}  // namespace

TEST_CASE("a run-time program has the plan of the compiler") {
  const char* const axes = "data=2,expert";
  check_same<gs::program<moe_layer, mesh, in<"G@expert,S,M">>>({moe_layer, axes, {"f32[G@expert,S,M]"}});
  check_same<gs::program<training, mesh, in<"G@expert,S,M">, in<"GSM">, in<"">>>(
      {training, axes, {"G@expert,S,M", "f32[GSM]", ""}});
  check_same<gs::program<two_results, mesh, in<"B@data,M", double>, in<"MH", double, gs::column_major>>>(
      {two_results, mesh::shape, {"f64[B@data,M]", {"f64[MH]", gs::column_major{}}}});
  check_same<gs::program<no_input, mesh, gs::element<double>>>({no_input, axes, {.element = gs::dtype::f64}});
  check_same<gs::program<two_results, mesh, in<"B@data,M">, in<"MH">, gs::extent<'M', 64>, gs::partial_outputs, gs::bf16_products,
                         gs::combine_up_to<0>>>(
      {two_results, axes, {"B@data,M", "MH"},
       {.compile = {.known = {{'M', 64}}, .partial_outputs = true, .combine_bytes = 0}, .bf16_products = true}});
}

TEST_CASE("a model may have captures, and a number of layers and inputs that is known at run time") {
  for (const int layers : {0, 1, 3}) {
    const auto tower = [&](gs::parameter_scope m, gs::symbol x) {
      for (int i = 0; i < layers; ++i) x = gs::relu(gs::einsum<"BM,MN->BN">(x, m.scope(i).param("w", "MM", gs::init::fan_in("M"))));
      return x;
    };
    const gs::runtime_program program(tower, "data", {"B@data,M"});
    CHECK(program.plan().count(gs::op::einsum) == layers);
  }
  const auto sums = [](gs::parameter_scope&, gs::list_view<gs::symbol> x) {
    std::vector<gs::symbol> all;
    for (const gs::symbol& s : x) all.push_back(gs::sum(s));
    return all;
  };
  const std::vector<gs::tensor_text> inputs{"B@data,M", "f64[G]", "M"};
  const gs::runtime_program program(sums, "data", inputs);
  CHECK(program.plan().outputs.size() == 3);
  CHECK(program.inputs().size() == 3);
  CHECK(program.plan().collectives() == 1);
}

TEST_CASE("mistakes are the sentences of the compiler, with line, operation and tensor") {
  const int line = __LINE__ + 1;
  const std::string wrong_dims = fault_of([](auto& m, auto x) { return gs::einsum<"BM,MH->BH">(x, m.param("w", "KH", gs::init::zeros())); });
  CHECK(wrong_dims == "one index or operation has two different dims (\"BM,MH->BH\", operand 1, dim 0, index \"M\", line " +
                          std::to_string(line) + ")");
  CHECK(contains(fault_of([](auto& m, auto x) { return x * m.param("w", "M@exprt", gs::init::zeros()); }),
                 "a partition spec names an axis that the mesh does not have (\"exprt\" in \"w\""));
  const auto gathers = [](auto&, auto x) { return gs::annotate<"B,M@expert">(gs::cumsum(x, 0)) + x; };
  CHECK(contains(fault_of(gathers, {.compile = {.implicit_moves = gs::strictness::strict}}), "line"));
  CHECK(contains(fault_of([](auto&, auto x) { return x; }, {.compile = {.known = {{'B', 3}}}}), "a static extent is not a multiple"));
  try {
    gs::runtime_program program([](auto&, auto x) { return gs::einsum("BM->Q", {x}); }, "data", {"BM"});
    FAIL("no error");
  } catch (const gs::program_error& e) {
    CHECK(e.problem.what == gs::fault::index_in_no_operand);
  }
  CHECK(contains(complaint([] { gs::runtime_program program([](auto&, auto x) { return x; }, "data", {"f32[B@model,M]"}); }),
                 "a partition spec names an axis that the mesh does not have"));
}

TEST_CASE("the searched shardings of a run-time program are those of its next plan") {
  const auto layer = [](auto& m, auto x) { return gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", gs::init::zeros())); };
  const gs::compile_options sizes{.known = {{'B', 64}, {'M', 512}, {'H', 256}}};
  const gs::runtime_program plain(layer, "x=4", {"BM"}, {.compile = sizes});
  const gs::shard_choice found = gs::search_shardings(plain.graph(), plain.mesh(), {.compile = sizes});
  REQUIRE(!found.problem);
  std::vector<gs::sharding> layouts;
  for (const gs::layout_choice& c : found.tensors) layouts.push_back(c.layout);
  const gs::runtime_program sharded(layer, "x=4", {"BM"}, {.compile = sizes, .layouts = layouts});
  const gs::plan_view plan = sharded.plan();
  CHECK(plan.at(plan.inputs[0].value).layout.same_layout(found.tensors[0].layout));
  CHECK(plan.find("w") != nullptr);
  CHECK(found.tensors[0].layout.used() + found.tensors[1].layout.used() != 0);
}

TEST_CASE("copies of a program share its plan") {
  gs::plan_view plan{};
  gs::runtime_program copy = [&] {
    const gs::runtime_program made(moe_layer, "data=2,expert", {"G@expert,S,M"});
    plan = made.plan();
    return made;
  }();
  CHECK(copy.plan().steps.data() == plan.steps.data());
  CHECK(copy.mesh().rank() == 2);
}
