// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A user's program with more warnings than gshard's own, and with globals that have the names of parameters and variables in the headers.
#ifdef GSHARD_TEST_GLOBALS
#include "globals.hpp"
#endif

#include "headers.hpp"

#include <vector>

namespace user_code {

namespace gs = gshard;

constexpr auto my_step = [](auto& my_model, auto my_tokens, auto my_rate) {
  const auto my_weight = my_model.param("w", "MH", gs::init::normal(0.1));
  const auto my_loss = gs::mean(gs::einsum<"BM,MH->BH">(my_tokens, my_weight));
  gs::adam{}.minimize(my_model, my_loss, my_rate);
  return my_loss;
};
using my_mesh = gs::mesh<gs::axis<"data">>;
using my_training = gs::program<my_step, my_mesh, gs::in<"BM", gs::P<"data", gs::none>>, gs::in<"">>;

void train_once() {
  gs::parameter_store my_store(gs::simulate<my_mesh>(2), 1);
  gs::executable<my_training> my_run(my_store.cluster(), {{'B', 4}, {'M', 3}, {'H', 2}}, my_store);
  my_run(std::vector<float>(12, 1.0f), std::vector<float>(1, 0.1f));
}

}  // namespace user_code

int main() { user_code::train_once(); }
