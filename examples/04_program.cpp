// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program is written over whole tensors. Annotate a few; propagation finds the shardings of all others.
#include <gshard/gshard.hpp>
#include <gshard/sim/report/describe.hpp>

#include <iostream>
#include <vector>

namespace gs = gshard;
using mesh = gs::mesh<gs::axis<"data", 2>, gs::axis<"model", 2>>;

// Two layers. Only the hidden dim of the first weight is annotated: the rows of wo follow.
inline constexpr auto mlp = [](auto& m, auto x) {
  auto wi = m.param("wi", "M,H@model", gs::init::constant(0.5));
  auto wo = m.param("wo", "HM", gs::init::constant(0.25));
  auto h = gs::relu(gs::einsum<"BM,MH->BH">(x, wi));
  return gs::einsum<"BH,HM->BM">(h, wo);
};
using program = gs::program<mlp, mesh, gs::in<"B@data,M">>;

// The contracted dim H is sharded over "model": one sum, and nothing else is sent.
static_assert(program::plan.collectives() == 1 && program::plan.count(gs::op::all_reduce) == 1);

int main() {
  std::cout << gs::describe(program::plan);
  gs::executable<program> run(gs::simulate<mesh>(4), {{'B', 6}, {'M', 8}, {'H', 16}});
  const std::vector<float> x(6 * 8, 1.0f);  // whole, row-major
  const auto y = run(x);                    // tensor<float, P<"data", none>>
  // h = 8 * 0.5 = 4, y = 16 * 4 * 0.25
  std::cout << "y has " << y.extent(0) << "x" << y.extent(1) << " elements, all " << gs::to_global(y).front() << '\n';
}
