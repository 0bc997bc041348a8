// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The passes that the compiler runs are functions: call them at run time, look at the program after each, set breakpoints in them.
#include <gshard/plan.hpp>
#include <gshard/sim/report/describe.hpp>

#include <iostream>
#include <string_view>

namespace gs = gshard;
using gs::in;
using mesh = gs::mesh<gs::axis<"data", 2>, gs::axis<"model", 4>>;

inline constexpr auto model = [](auto& m, auto x) {
  auto w = m.param("w", "M,H@model", gs::init::fan_in("M"));
  return gs::softmax(gs::einsum<"BM,MH->BH">(x, w));
};

int main() {
  using input = in<"B@data,M">;
  gs::graph program = gs::trace<model, mesh, input>();
  const auto print = [](std::string_view pass, const gs::plan_view& now) {
    std::cout << "after " << pass << ": " << gs::describe(now);
  };
  // A breakpoint in choose_strategy (core/partition/choose_strategy.hpp) stops at every node.
  const gs::plan_tables plan = gs::compile(program, mesh::shape, gs::compile_options_of<input>(), print);
  return plan.problem ? 1 : 0;
}
