// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// In which order two plans update parameters. More of them: tests/pass/schedule/update_order_test.cpp.
#include <gshard/optim/adam.hpp>
#include <gshard/plan.hpp>

#include <cstddef>

namespace gs = gshard;

namespace {

using mesh = gs::mesh<gs::axis<"data", 2>>;

constexpr gs::symbol one_layer(const gs::parameter_scope& m, gs::symbol x) {
  const gs::symbol h = gs::relu(gs::einsum<"BM,MF->BF">(x, m.param("wi", "MF", gs::init::fan_in("M"))));
  return gs::einsum<"BF,FM->BM">(h, m.param("wo", "FM", gs::init::fan_in("F")));
}

/// Layers of two parameters each, and the update of all of them.
template <int Layers>
inline constexpr auto training_step = [](auto& m, auto x, auto rate) {
  gs::symbol y = x;
  for (int i = 0; i < Layers; ++i) y = one_layer(m.scope(i), y);
  const auto loss = gs::sum(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
template <int Layers>
using layers = gs::program<training_step<Layers>, mesh, gs::in<"BM", gs::P<"data", gs::none>>, gs::in<"">>;

/// The first step of a kind that is followed by one of another, or -1.
constexpr int first_before(const gs::plan_view& plan, gs::op kind, gs::op other) {
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    for (std::size_t j = i; plan.steps[i].kind == kind && j < plan.steps.size(); ++j)
      if (plan.steps[j].kind == other) return int(i);
  return -1;
}

/// Nobody reads a parameter, or a moment, after it was written over, but through the result.
constexpr bool reads_are_of_what_was_meant(const gs::plan_view& plan) {
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    for (int k = 0; k < plan.steps[i].in_place; ++k)
      for (std::size_t j = i + 1; j < plan.steps.size(); ++j)
        for (int l = 0; l < plan.steps[j].inputs; ++l)
          if (plan.steps[j].input(l) == plan.steps[i].input(k)) return false;
  return true;
}

static_assert(layers<9>::plan.count(gs::op::adam) == 18);
static_assert(first_before(layers<9>::plan, gs::op::adam, gs::op::einsum) >= 0,
              "updates of the last layers come before the first gradients");
static_assert(reads_are_of_what_was_meant(layers<9>::plan));

// Gradients made of parameters alone: what several updates read comes first, and nothing reads a parameter after its update.
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
