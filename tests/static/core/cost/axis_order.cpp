// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The axes that are within nodes.
#include <gshard/core/cost/axis_order.hpp>

#include <gshard/core/program/program.hpp>
#include <gshard/core/trace/shape.hpp>

#include <array>

namespace gs = gshard;
using gs::none, gs::P;

namespace {

constexpr auto sum_of_rows = [](auto&, auto a) { return gs::annotate<P<none>>(gs::einsum<"AB->B">(a)); };
using mesh = gs::mesh<gs::axis<"x", 2>, gs::axis<"y", 2>>;
template <class Rows>
using sums_over = gs::program<sum_of_rows, mesh, gs::in<"AB", Rows>>;

constexpr std::array node{0, 0, 1, 1};
constexpr std::array extents{2, 2};
template <class Program>
constexpr int innermost() {
  const auto order = gs::axis_order(Program::plan, Program::plan.bind({{'A', 8}, {'B', 4096}}, extents), node);
  return order.size() == 2 ? order[1] : -1;
}
static_assert(innermost<sums_over<P<"x", none>>>() == 0);
static_assert(innermost<sums_over<P<"y", none>>>() == 1);

}  // namespace
