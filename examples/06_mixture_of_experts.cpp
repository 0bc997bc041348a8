// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The paper's layer (arXiv 2006.16668, Algorithm 2): tokens are sent to their experts by one all_to_all, and back by another.
#include <gshard/gshard.hpp>

#include <iostream>
#include <tuple>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::in;
using mesh = gs::mesh<gs::axis<"expert">>;

// x: groups, tokens, model. wg gives each token a weight per expert; the best two experts of a token are used.
inline constexpr auto layer = [](auto& m, auto x) {
  auto wg = m.param("wg", "ME", gs::init::fan_in("M"));
  auto wi = m.param("wi", "E@expert,M,H", gs::init::fan_in("M"));
  auto wo = m.param("wo", "E@expert,H,M", gs::init::fan_in("H"));
  auto route = gs::top2_gating(gs::softmax(gs::einsum<"GSM,ME->GSE">(x, wg)), gs::capacity{2.0});
  auto expert_input = gs::einsum<"GSEC,GSM->EGCM">(route.dispatch, x);
  auto h = gs::relu(gs::einsum<"EGCM,EMH->EGCH">(expert_input, wi));
  auto expert_output = gs::einsum<"EGCH,EHM->GECM">(h, wo);
  return std::tuple{gs::einsum<"GSEC,GECM->GSM">(route.combine, expert_output), gs::sum<"GE->E">(route.load)};
};
using program = gs::program<layer, mesh, in<"G@expert,S,M">>;
static_assert(program::plan.count(op::all_to_all) == 2);
static_assert(program::plan.count(op::all_reduce) == 1);  // the load, a few numbers
static_assert(program::plan.collectives() == 3);

int main() {
  gs::executable<program> run(gs::simulate<mesh>(4), {{'G', 8}, {'S', 16}, {'M', 8}, {'E', 4}, {'H', 32}});
  std::vector<float> x(8 * 16 * 8);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float((i * 37) % 19) / 19 - 0.5f;
  const auto [y, load] = run(x);
  float choices = 0;
  for (const float tokens : gs::to_global(load)) choices += tokens;
  std::cout << y.size() << " numbers; the experts took " << choices << " choices of " << 8 * 16 << " tokens\n";
}
