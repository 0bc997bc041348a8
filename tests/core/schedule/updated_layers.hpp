// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include <cstddef>

// Layers that are trained, and the order of updates in their plans, for plans as constants and at run time.
namespace updated_layers {

namespace gs = gshard;

using mesh = gs::mesh<gs::axis<"data", 2>>;

constexpr gs::symbol one_layer(const gs::parameter_scope& m, gs::symbol x) {
  const gs::symbol h = gs::relu(gs::einsum<"BM,MF->BF">(x, m.param("wi", "MF", gs::init::fan_in("M"))));
  return gs::einsum<"BF,FM->BM">(h, m.param("wo", "FM", gs::init::fan_in("F")));
}

/// Layers of two parameters each, and the update of all of them.
template <int Layers, gs::gradient_wire Wire>
inline constexpr auto training_step = [](auto& m, auto x, auto rate) {
  gs::symbol y = x;
  for (int i = 0; i < Layers; ++i) y = one_layer(m.scope(i), y);
  const auto loss = gs::sum(y * y);
  gs::adam{.wire = Wire}.minimize(m, loss, rate);
  return loss;
};
template <int Layers, gs::gradient_wire Wire = gs::gradient_wire::full>
using layers = gs::program<training_step<Layers, Wire>, mesh, gs::in<"BM", gs::P<"data", gs::none>>, gs::in<"">>;

/// The first step of a kind that precedes a step of another, or -1.
constexpr int first_before(const gs::plan_view& plan, gs::op_ref kind, gs::op_ref other) {
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    for (std::size_t j = i; plan.steps[i].kind == kind && j < plan.steps.size(); ++j)
      if (plan.steps[j].kind == other) return int(i);
  return -1;
}

/// True if no step reads a parameter or a moment after its update in place, except through the result.
constexpr bool reads_are_of_what_was_meant(const gs::plan_view& plan) {
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    for (int k = 0; k < plan.steps[i].in_place; ++k)
      for (std::size_t j = i + 1; j < plan.steps.size(); ++j)
        for (int l = 0; l < plan.steps[j].inputs; ++l)
          if (plan.steps[j].input(l) == plan.steps[i].input(k)) return false;
  return true;
}

}  // namespace updated_layers
