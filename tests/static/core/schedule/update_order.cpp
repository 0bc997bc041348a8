// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The order in which two plans update parameters. More plans: tests/core/schedule/update_order_test.cpp.
#include "../../../core/schedule/updated_layers.hpp"

#include <gshard/train/adam.hpp>

namespace gs = gshard;
using updated_layers::first_before, updated_layers::layers, updated_layers::mesh, updated_layers::reads_are_of_what_was_meant;

namespace {

static_assert(layers<9>::plan.count(gs::op::adam) == 18);
static_assert(first_before(layers<9>::plan, gs::op::adam, gs::op::einsum) >= 0,
              "updates of the last layers come before the first gradients");
static_assert(reads_are_of_what_was_meant(layers<9>::plan));

// Gradients computed only from parameters: common operands of several updates come first, and no step reads a parameter after its update.
inline constexpr auto no_data_step = [](auto& m, auto rate) {
  const auto decay = 0.1 * m.variable("decay", "M", gs::init::zeros());
  const auto a = m.param("a", "M", gs::init::zeros()), b = m.param("b", "M", gs::init::zeros());
  const auto stored = m.param("stored", "M", gs::init::zeros(), gs::dtype::bf16);
  const auto of_a = 0.1 * b, of_b = 0.1 * a;
  gs::adam{}.update(m, a, of_a, rate);
  gs::adam{}.update(m, b, of_b, rate);
  gs::adam{}.update(m, stored, 2.0 * decay, rate);
  for (int i = 0; i < 20; ++i) {
    const auto p = m.scope(i).param("p", "M", gs::init::zeros());
    gs::adam{}.update(m, p, decay * m.scope(i).variable("q", "M", gs::init::zeros()), rate);
  }
  return gs::sum(decay);
};
using no_data = gs::program<no_data_step, mesh, gs::in<"">>;
static_assert(no_data::plan.count(gs::op::adam) == 23 && reads_are_of_what_was_meant(no_data::plan));

}  // namespace
