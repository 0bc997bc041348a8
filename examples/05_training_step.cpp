// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A training step is one program: loss, gradients and the update of the parameters. Its plan includes the reductions of gradients.
#include <gshard/gshard.hpp>

#include <iostream>
#include <span>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::in;
using mesh = gs::mesh<gs::axis<"data">>;

inline constexpr auto training_step = [](auto& m, auto x, auto y, auto rate) {
  auto w1 = m.param("w1", "MH", gs::init::fan_in("M"));
  auto w2 = m.param("w2", "HO", gs::init::fan_in("H"));
  auto h = gs::map<[](auto v) { return gs::tanh(v); }>(gs::einsum<"BM,MH->BH">(x, w1));
  auto error = gs::einsum<"BH,HO->BO">(h, w2) - y;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using training = gs::program<training_step, mesh, in<"B@data,M">, in<"B@data,O">, in<"">>;

// The batch is sharded: one all_reduce per parameter, and one for the loss.
static_assert(training::plan.count(op::all_reduce) == 3 && training::plan.collectives() == 3);

int main() {
  gs::executable<training> train(gs::simulate<mesh>(3), {{'B', 64}, {'M', 8}, {'H', 32}, {'O', 1}});
  std::vector<float> x(64 * 8), y(64);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i % 7) - 3;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[8 * i] > 0 ? 1.0f : -1.0f;
  const float rate = 0.01f;
  float first = 0, last = 0;
  for (int i = 0; i < 100; ++i) {
    last = train(x, y, std::span(&rate, 1)).item();
    if (i == 0) first = last;
  }
  std::cout << "the loss fell by more than 90 %: " << (last < first / 10 ? "yes" : "no") << '\n';
}
