// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/train/weight_decay.hpp>

#include <gshard/plan.hpp>
#include <gshard/train/adafactor.hpp>
#include <gshard/train/adam.hpp>

#include "../tracing.hpp"

#include <string_view>
#include <type_traits>

namespace gs = gshard;

namespace {

constexpr bool all_but_norms(std::string_view name, int dims) { return dims > 1 || name != "norm"; }

static_assert(tracing::holds([](auto&, auto& m) {
  const gs::symbol w = m.param("w", "AB", gs::init::zeros()), bias = m.param("bias", "A", gs::init::zeros()),
                   norm = m.param("norm", "A", gs::init::zeros());
  const auto of = [](gs::symbol p, const gs::decay_mask& decays) { return gs::detail::weight_decay_of(p, 0.1, decays); };
  return of(w, nullptr) == 0.1 && of(norm, nullptr) == 0.1 && of(w, all_but_norms) == 0.1 && of(bias, all_but_norms) == 0.1 &&
         of(norm, all_but_norms) == 0 && of(bias, [](std::string_view, int dims) { return dims > 1; }) == 0;
}));

// A negative norm or decay is refused, with its name.
template <class Optimizer>
constexpr bool refused(std::string_view optimizer, std::string_view option, const Optimizer& o) {
  return tracing::out_of_range(optimizer, option, {}, [&](gs::builder& b, auto& m) {
    o.minimize(m, gs::sum(m.param("w", "A", gs::init::zeros())), tracing::input(b, ""));
  });
}
static_assert(refused("adam", ".clip_norm", gs::adam{.clip_norm = -1}) && refused("adam", ".weight_decay", gs::adam{.weight_decay = -0.1}));
static_assert(refused("adafactor", ".clip_norm", gs::adafactor{.clip_norm = -1}));
static_assert(refused("adafactor", ".weight_decay", gs::adafactor{.weight_decay = -0.1}));

// A program whose optimizer has a mask. It also compiles under -fsanitize=undefined, where g++ does not compare functions with null.
inline constexpr auto model = [](auto& m, auto x, auto rate) {
  const auto loss = gs::sum(x * m.param("w", "A", gs::init::zeros()) + m.param("norm", "A", gs::init::zeros()));
  gs::adam{.weight_decay = 0.1, .decays = all_but_norms}.minimize(m, loss, rate);
  return loss;
};
constexpr gs::plan_view plan = gs::program<model, gs::mesh<gs::axis<"x">>, gs::in<"A">, gs::in<"">>::plan;
constexpr int decaying = [] {
  int n = 0;
  for (const gs::node& s : plan.steps) n += s.kind == gs::op::adam && gs::own<gs::adam_attributes>(s).weight_decay == 0.1;
  return n;
}();
static_assert(plan.count(gs::op::adam) == 2 && decaying == 1);

// Optimizers have the same options. Adafactor's may be a template argument.
template <auto Settings>
constexpr double decay = Settings.weight_decay;
static_assert(decay<gs::adafactor{.weight_decay = 0.2}> == 0.2);
static_assert(std::is_same_v<decltype(gs::adam::decays), gs::decay_mask> &&
              std::is_same_v<decltype(gs::adafactor::decays), gs::decay_mask>);
static_assert(gs::adam{}.weight_decay == 0 && gs::adafactor{}.weight_decay == 0 && gs::adam{}.clip_norm == 0 &&
              gs::adafactor{}.clip_norm == 0);

}  // namespace
