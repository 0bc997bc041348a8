// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Uses of a refused program, its plan and its outputs cause no further errors.
// expect: gshard: a partition spec names an axis that the mesh does not have
#include <gshard/gshard.hpp>
#include <gshard/report.hpp>

#include <string>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"data">>;

#if defined(MUST_FAIL)
using input = gs::in<"AB", P<"date", none>>;
#else
using input = gs::in<"AB", P<"data", none>>;
#endif
inline constexpr auto model = [](auto& m, auto x, auto rate) {
  auto loss = gs::mean(x * m.param("w", "AB", gs::init::zeros()));
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using program = gs::program<model, mesh, input, gs::in<"">>;
static_assert(program::plan.count(gs::op::all_reduce) == 1 && program::plan.collectives() == 1);

std::string train(const gs::cluster<mesh>& on, const std::vector<float>& x, const gs::tensor<float, P<>>& rate) {
  gs::executable<program> step(on, {{'A', 6}, {'B', 4}});
  step.bind_input<0>(x);
  step.start_bound();
  step.wait();
  float loss = step(x, rate).item();
  const gs::tensor<float, P<>> last = step(x, rate);
  loss += gs::to_global(step(x, rate)).front() + last.item();
  return gs::describe(program::plan) + std::to_string(loss);
}
