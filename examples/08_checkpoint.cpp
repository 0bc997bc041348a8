// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A checkpoint is one safetensors file, the same bytes from any mesh. Save on 4 devices, continue on 3.
#include <gshard/gshard.hpp>
#include <gshard/io.hpp>

#include <cstdio>
#include <iostream>
#include <vector>

namespace gs = gshard;
using gs::in;
using mesh = gs::mesh<gs::axis<"data">>;

inline constexpr auto model = [](auto& m, auto x) { return gs::einsum<"BM,MO->BO">(x, m.param("w", "MO", gs::init::fan_in("M"))); };
inline constexpr auto training_step = [](auto& m, auto x, auto y, auto rate) {
  auto error = model(m, x) - y;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using training = gs::program<training_step, mesh, in<"B@data,M">, in<"B@data,O">, in<"">>;

int main() {
  const gs::dims sizes{{'B', 12}, {'M', 4}, {'O', 2}};
  const std::vector<float> x(12 * 4, 1.0f), y(12 * 2, 3.0f), rate(1, 0.1f);
  // Includes the state of Adam, so that the training continues as if it had not stopped.
  const gs::checkpoint_options everything{.scope = gs::checkpoint_scope::everything};

  gs::parameter_store four(gs::simulate<mesh>(4), 42);  // 42: the seed of initial values
  gs::executable<training> train(four.cluster(), sizes, four);
  for (int i = 0; i < 5; ++i) train(x, y, rate);
  gs::save(four, "08_checkpoint.safetensors", everything);
  const float without_stop = train(x, y, rate).item();

  gs::parameter_store three(gs::simulate<mesh>(3), 42);
  gs::executable<training> resumed(three.cluster(), sizes, three);
  gs::load(three, "08_checkpoint.safetensors", everything);
  const float after_load = resumed(x, y, rate).item();
  std::remove("08_checkpoint.safetensors");

  const float difference = after_load - without_stop;  // another number of devices adds in another order
  std::cout << "step 6 on 3 devices continues step 5 on 4: " << (difference * difference < 1e-8f ? "yes" : "no") << '\n';
}
