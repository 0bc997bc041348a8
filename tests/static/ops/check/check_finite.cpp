// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/check/check_finite.hpp>

#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/program/program.hpp>

#include "../../tracing.hpp"

#include <array>
#include <string_view>

namespace gs = gshard;
using gs::builder, gs::dtype, gs::fault, gs::none, gs::P, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = gs::check_finite(input(b, "AB"), "y");
  return has_dims(y, "AB") && b.program.nodes.back().attr.label == std::string_view("y");
}));
static_assert(tracing::wrong_type("check_finite", 0, "i32", "f32, f64, c64, c128",
                                  [](builder& b, auto&) { (void)gs::check_finite(input(b, "A", dtype::i32), "y"); }));
// Gradients pass unchecked.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB"), y = gs::check_finite(x, "y");
  const gs::list<symbol> d = gs::gradients(gs::sum(y * y), std::array{x});
  return has_dims(d[0], "AB") && tracing::count(b.program, gs::op::check_finite) == 1;
}));

// It moves nothing, in any sharding. The check of a partial sum completes it.
inline constexpr auto checked = [](auto&, auto x) { return gs::check_finite(x, "x"); };
inline constexpr auto checked_sum = [](auto&, auto x) { return gs::check_finite(gs::sum(x), "x"); };
using mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>;
static_assert(gs::program<checked, mesh, gs::in<"AB", P<"x", "y">>>::plan.collectives() == 0);
static_assert(gs::program<checked, mesh, gs::in<"AB", P<none, "x">>>::plan.collectives() == 0);
static_assert(gs::program<checked_sum, mesh, gs::in<"AB", P<"x", "y">>>::plan.collectives() == 1);

}  // namespace
