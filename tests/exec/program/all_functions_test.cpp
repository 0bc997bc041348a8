// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tests/static/all_functions.cpp checks the names. tests/architecture checks that the list is complete.
#include <gshard/all_functions.hpp>
#include <gshard/plan.hpp>

#include "../planner.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <string>

namespace gs = gshard;
namespace nn = gshard::nn;
using gs::in, gs::none, gs::P;

namespace {

/// The name of a function or of a derivative, or nothing.
std::string name_of(const gs::pointwise& f) {
  for (const gs::detail::named_function& entry : gs::all_functions) {
    if (entry.function == &f) return std::string(entry.name);
    for (int i = 0; entry.function->differentiable && i < entry.function->arity; ++i)
      if (&entry.function->derivative(i) == &f) return std::string(entry.name) + "'" + std::to_string(i);
  }
  return {};
}

/// The names of the functions of a plan. Each function needs a name or a number.
std::set<std::string> functions_of(const gs::plan_view& plan) {
  std::set<std::string> names;
  for (const gs::node& step : plan.steps) {
    if (step.kind != gs::op::map || step.attr.function->own >= 0) continue;
    const std::string name = name_of(*step.attr.function);
    CAPTURE(gs::name_of(step));
    CAPTURE(step.place.line);
    CHECK(!name.empty());
    names.insert(name);
  }
  return names;
}

using line = gs::mesh<gs::axis<"x">>;
inline constexpr gs::adafactor careful{.beta1 = 0.9, .weight_decay = 0.5, .if_not_finite = gs::not_finite::skip, .clip_norm = 1};
inline constexpr gs::adafactor plain{.relative = false};

// Rows whose last dim is sharded: softmax and others are computed by blocks.
template <const gs::adafactor& Optimizer>
inline constexpr auto rows = [](auto& m, auto x, auto labels) {
  auto w = m.param("w", "AB", P<none, "x">{}, gs::init::normal(1));
  auto gamma = m.param("gamma", "B", P<"x">{}, gs::init::constant(1)), beta = m.param("beta", "B", P<"x">{}, gs::init::zeros());
  auto y = gs::layer_norm(gs::softmax(x * w), gamma, beta);
  auto loss = gs::sum(gs::cross_entropy(y, labels)) + gs::sum(gs::logsumexp<"AB->A">(y)) + gs::reduce_max(y) + gs::reduce_prod(y);
  Optimizer.minimize(m, loss);
  return loss;
};
template <const gs::adafactor& Optimizer>
using rows_on_line = gs::program<rows<Optimizer>, line, in<"AB", P<none, "x">>, in<"A", P<none>, std::int32_t>>;

inline constexpr nn::language_model_options options{.layers = 2, .moe = {.routing = {.z_loss = 0.1}, .swiglu = true}, .tied_head = false};
inline constexpr auto language_model = [](auto& m, auto ids, auto labels, auto rate) {
  nn::routing_summary routing;
  auto loss = m.objective(nn::token_loss(nn::language_model<"x">(m, ids, options, routing), labels), 0.1);
  plain.minimize(m, loss, rate);
  return loss;
};
using sequences = in<"GBT", P<"x", none, none>, std::int32_t>;

}  // namespace

TEST_CASE("every function of the library has kernels, and no number") {
  for (const gs::detail::named_function& f : gs::all_functions) {
    CAPTURE(f.name);
    CHECK((f.function->f32 != nullptr));
    CHECK((f.function->f64 != nullptr));
    CHECK(f.function->own < 0);
    CHECK(f.function->arity > 0);
    CHECK(name_of(*f.function) == f.name);
  }
}

TEST_CASE("the functions of plans are found by their addresses") {
  const std::set<std::string> careful_rows = functions_of(planned::plan_of<rows_on_line<careful>>());
  for (const std::string name : {"softmax.exponential", "softmax.slope", "layer_norm.slope", "cross_entropy.exponential",
                                 "logsumexp.logarithm'0", "reduce.product_slope", "adafactor.decayed_step_unless", "clip.factor"}) {
    CAPTURE(name);
    CHECK(careful_rows.contains(name));
  }
  const std::set<std::string> plain_rows = functions_of(planned::plan_of<rows_on_line<plain>>());
  CHECK(plain_rows.contains("adafactor.step"));
  const std::set<std::string> model = functions_of(planned::plan_of<gs::program<language_model, line, sequences, sequences, in<"">>>());
  for (const std::string name : {"rotary.turn'0", "rms_norm.normalized", "swiglu.gated_by_silu'1", "router.square_if_real"}) {
    CAPTURE(name);
    CHECK(model.contains(name));
  }
}
