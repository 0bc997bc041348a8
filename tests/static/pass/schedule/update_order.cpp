// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/optim/adam.hpp>
#include <gshard/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gs = gshard;

namespace {

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

/// Where ids are looked up again in the gradient: nothing can fail there that has not failed before.
inline constexpr auto lookup_step = [](auto& m, auto x, auto ids, auto rate) {
  const auto table = m.param("table", "VM", gs::init::fan_in("M"));
  gs::symbol y = x + gs::gather(table, ids);
  for (int i = 0; i < 12; ++i) y = one_layer(m.scope(i), y);
  const auto loss = gs::sum(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using lookup = gs::program<lookup_step, mesh, gs::in<"BM", gs::P<"data", gs::none>>, gs::in<"B", gs::P<"data">, std::int32_t>, gs::in<"">>;

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

/// The steps between the first of one kind and the next of another.
constexpr int steps_between(const gs::plan_view& plan, gs::op first, gs::op next) {
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    for (std::size_t j = i + 1; plan.steps[i].kind == first && j < plan.steps.size(); ++j)
      if (plan.steps[j].kind == next) return int(j - i);
  return -1;
}

static_assert(layers<20>::plan.count(gs::op::adam) == 40);
static_assert(first_before(layers<20>::plan, gs::op::adam, gs::op::einsum) >= 0,
              "updates of the last layers come before the first gradients");
static_assert(reads_are_of_what_was_meant(layers<20>::plan));
static_assert(first_before(layers<7>::plan, gs::op::adam, gs::op::einsum) == -1, "less than two buckets");
// Gradients are rounded where they are computed, whether or not with feedback, and updated in buckets as ever.
using fed_back = layers<20, gs::gradient_wire::bf16_with_feedback>;
static_assert(fed_back::plan.count(gs::op::adam) == 40 && fed_back::plan.count(gs::op::feedback) == 40);
static_assert(first_before(fed_back::plan, gs::op::feedback, gs::op::adam) >= 0 &&
              first_before(fed_back::plan, gs::op::adam, gs::op::einsum) >= 0);
static_assert(steps_between(fed_back::plan, gs::op::feedback, gs::op::cast) == 1);
static_assert(steps_between(fed_back::plan, gs::op::feedback, gs::op::adam) > 10, "the sum of the first gradient overlaps with others");
static_assert(reads_are_of_what_was_meant(fed_back::plan));
using rounded = layers<20, gs::gradient_wire::bf16>;
static_assert(rounded::plan.count(gs::op::all_reduce) == layers<20>::plan.count(gs::op::all_reduce), "as many combined sums as in float");
static_assert(fed_back::plan.count(gs::op::all_reduce) == layers<20>::plan.count(gs::op::all_reduce));
static_assert(steps_between(rounded::plan, gs::op::cast, gs::op::adam) > 10);
static_assert(lookup::plan.count(gs::op::adam) == 25 && first_before(lookup::plan, gs::op::adam, gs::op::einsum) >= 0);
static_assert(reads_are_of_what_was_meant(lookup::plan));

// Master values of weights in half precision are made where they are updated; so is what is rounded of them. So not all are kept at once.
inline constexpr auto half_precision_step = [](auto& m, auto x, auto rate) {
  gs::symbol y = x;
  for (int i = 0; i < 30; ++i)
    y = gs::relu(gs::einsum<"BM,MM->BM">(y, gs::cast<float>(m.scope(i).param("w", "MM", gs::init::fan_in("M"), gs::dtype::bf16))));
  const auto loss = gs::sum(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using half_precision = gs::program<half_precision_step, mesh, gs::in<"BM", gs::P<"data", gs::none>>, gs::in<"">>;
static_assert(half_precision::plan.count(gs::op::adam) == 30 && reads_are_of_what_was_meant(half_precision::plan));
static_assert(first_before(half_precision::plan, gs::op::adam, gs::op::einsum) >= 0, "as weights in float");
/// The largest number of steps between an update and the steps before and after it that make its master value and its rounded result.
constexpr int widest_update(const gs::plan_view& plan) {
  int widest = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const gs::node& u = plan.steps[i];
    if (u.kind != gs::op::adam) continue;
    widest = std::max(widest, int(i) - int(plan.at(u.input(0)).producer));
    for (std::size_t j = i + 1; j < plan.steps.size(); ++j)
      for (int k = 0; k < plan.steps[j].inputs; ++k)
        if (plan.steps[j].input(k) == u.output(0)) widest = std::max(widest, int(j - i));
  }
  return widest;
}
static_assert(widest_update(half_precision::plan) <= 4);

/// The last step of a kind.
constexpr int last_of(const gs::plan_view& plan, gs::op kind) {
  int last = -1;
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    if (plan.steps[i].kind == kind) last = int(i);
  return last;
}
// Averages of updated weights read them in float: not beside the updates, or all float copies would be alive at once.
inline constexpr auto averaging_step = [](auto& m, auto x, auto rate) {
  const auto loss = half_precision_step(m, x, rate);
  for (int i = 0; i < 30; ++i) {
    const auto w = m.scope(i).param("w", "MM", gs::init::fan_in("M"), gs::dtype::bf16);
    const auto average = m.scope(i).variable("average", "MM", gs::init::zeros());
    m.update(average, 0.75 * average + 0.25 * gs::cast<float>(m.updated(w)));
  }
  return loss;
};
using averaging = gs::program<averaging_step, mesh, gs::in<"BM", gs::P<"data", gs::none>>, gs::in<"">>;
constexpr int first_of(const gs::plan_view& plan, gs::op kind, int from) {
  for (std::size_t i = std::size_t(from); i < plan.steps.size(); ++i)
    if (plan.steps[i].kind == kind) return int(i);
  return -1;
}
static_assert(first_before(averaging::plan, gs::op::adam, gs::op::einsum) >= 0);
static_assert(first_of(averaging::plan, gs::op::scale, last_of(averaging::plan, gs::op::einsum)) > last_of(averaging::plan, gs::op::adam));
static_assert(reads_are_of_what_was_meant(averaging::plan));
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
