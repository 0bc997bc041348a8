// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/program/ports.hpp>

#include <gshard/core/ir/spec.hpp>

#include <doctest/doctest.h>

#include <array>
#include <tuple>

namespace gs = gshard;
namespace detail = gs::detail;

namespace {
gs::builder on(const gs::mesh_shape& mesh, const gs::program_options& options = {}) {
  gs::builder b;
  detail::begin_program(b, mesh, options);
  return b;
}
constexpr gs::mesh_shape mesh = gs::mesh<gs::axis<"x">>::shape;
}  // namespace

TEST_CASE("inputs keep their order, sharding and memory order") {
  gs::builder b = on(mesh);
  const gs::symbol x = detail::add_input(b, "BM", gs::dtype::f32, false, true, gs::P<"B@x,M">::named);
  const gs::symbol y = detail::add_input(b, "MH", gs::dtype::i32, true, false, {});
  REQUIRE(!b.failed());
  CHECK(b.program.at(x.id).layout.dim_of(0) == 0);
  CHECK(b.program.inputs[0].value == x.id);
  CHECK(b.program.inputs[1].value != y.id);  // the verbs read it with its dims reversed
  CHECK(b.program.at(b.program.inputs[1].value).dims.same(y.get().dims.reversed()));
  CHECK(y.get().type == gs::dtype::i32);
}

TEST_CASE("faults of inputs and extents") {
  const auto fault_of = [](gs::builder b, const char* letters, gs::dtype type, const gs::named_sharding& spec) {
    detail::add_input(b, letters, type, false, true, spec);
    return b.program.problem.what;
  };
  CHECK(fault_of(on(mesh), "B1", gs::dtype::f32, gs::P<gs::none, gs::none>::named) == gs::fault::unknown_letter);
  CHECK(fault_of(on(mesh), "B", gs::dtype::f32, gs::P<"B@x,M">::named) == gs::fault::rank_mismatch);
  CHECK(fault_of(on(mesh), "B", gs::dtype::f32, gs::P<"y">::named) == gs::fault::unknown_axis);
  CHECK(fault_of(on(mesh), "B", gs::dtype::boolean, gs::P<gs::none, gs::partial<"x">>::named) == gs::fault::wrong_type);
  CHECK(on(mesh, {.compile = {.known = {{'B', -1}}}}).program.problem.what == gs::fault::bad_range);
  CHECK(on(mesh, {.compile = {.known = {{'B', 1}, {'B', 2}}}}).program.problem.what == gs::fault::bad_range);
}

TEST_CASE("outputs: one, several in a tuple or an array; those of an optimizer are checked") {
  gs::builder b = on(mesh);
  const gs::symbol x = detail::add_input(b, "B", gs::dtype::f32, false, false, {});
  b.checked_losses.push_back(x.id);
  detail::add_outputs(b, x);
  detail::add_outputs(b, std::tuple{x, x});
  detail::add_outputs(b, std::array{x, x, x});
  CHECK(b.program.outputs.size() == 6);
  CHECK(b.program.outputs[0].is_loss);
  detail::add_outputs(b, b.nothing());
  CHECK(b.failed());
}

TEST_CASE("given shardings replace those of inputs, then of parameters") {
  gs::builder b = on(mesh);
  detail::add_input(b, "B", gs::dtype::f32, false, false, {});
  gs::sharding by_x = gs::sharding::replicated(1);
  by_x[0].push_back(0);
  const std::array given{by_x};
  detail::set_layouts(b.program, given);
  CHECK(b.program.at(b.program.inputs[0].value).layout.same_layout(by_x));
}
