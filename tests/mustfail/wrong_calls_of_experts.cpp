// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Wrong calls of the layer of experts, its router and the verbs of replicas: one sentence each, and nothing else.
// expect: gshard: nn::moe<"expert">\(m, x, mask, \{\.routing = \{\.k = 2\}\}\) takes a mesh axis, the first argument of
// expect: gshard: nn::moe<"expert">\(m, x, mask, \{\.routing = \{\.k = 2\}\}\) takes a mesh axis, the first argument of
// expect: gshard: nn::route\(m, x, mask, \{\.k = 2\}\) takes the first argument of the model, two tensors of a program, an
// expect: gshard: nn::route\(m, x, mask, \{\.k = 2\}\) takes the first argument of the model, two tensors of a program, an
// expect: gshard: nn::update_bias\(m, demand, rate\) takes the first argument of the model, a tensor of a program and a numb
// expect: gshard: nn::update_bias\(m, demand, rate\) takes the first argument of the model, a tensor of a program and a numb
// expect: gshard: nn::measure_balance\(demand, overflow\) takes two tensors of a program, results of nn::moe
// expect: gshard: replicas_of_experts\(m, "R", "E"\) takes the first argument of the model and the letters of two dims
// expect: gshard: replica_param\(m, expert_of, name, "R@expert,M,F", init::zeros\(\)\) takes the first argument of
// expect: gshard: send_to_replicas\(gating, expert_of, capacity\{2\}\) takes the result of a gating, that of replicas_of_exp
// expect: gshard: send_to_replicas\(gating, expert_of, capacity\{2\}\) takes the result of a gating, that of replicas_of_exp
#include <gshard/moe/layer/moe.hpp>
#include <gshard/moe/layer/router.hpp>
#include <gshard/plan.hpp>

namespace gs = gshard;
namespace nn = gshard::nn;

inline constexpr auto model = [](auto& m, auto x, auto mask) {
  const auto use = [](const auto&...) {};
#if defined(MUST_FAIL)
  const auto layer = nn::moe<"expert">(x, m, mask);
  use(nn::moe(m, x, mask).y);
  use(nn::route(m, x).combine);
  use(nn::route(m, x, mask, 2).combine);
  nn::update_bias(m, layer.demand);
  nn::update_bias(m, x, x);
  use(nn::measure_balance(layer).busiest);
  const auto gating = gs::top_k_gating(x);
  const auto expert_of = gs::replicas_of_experts(m.scope("other"), "R", "E");
  use(gs::replicas_of_experts(m, "R"));
  use(gs::replica_param(m, "w", "RM", gs::init::zeros()));
  use(gs::send_to_replicas(expert_of, gating).combine);
  use(gs::send_to_replicas(gating, expert_of, 2).combine);
  use(nn::measure_balance(layer.demand, layer.overflow).busiest);
#else
  const auto layer = nn::moe<"expert">(m, x, mask);
  const nn::moe_options options{.routing = {.k = 1}};
  use(nn::moe<"expert">(m.scope("other"), x, mask, options).y);
  use(nn::route(m.scope("route"), x, mask).combine);
  use(nn::route(m.scope("sigmoid"), x, mask, {.score = gs::gate_score::sigmoid}).combine);
  nn::update_bias(m, layer.demand, 0.1);
  use(nn::measure_balance(layer.demand, layer.overflow).busiest);
  const auto expert_of = gs::replicas_of_experts(m.scope("other"), "R", "E");
  use(gs::replica_param(m.scope("other"), expert_of, "w", "R,M", gs::init::zeros()));
  use(gs::send_to_replicas(nn::route(m.scope("last"), x, mask), expert_of, gs::capacity{2}).combine);
#endif
  return layer.y;
};
static_assert(gs::program<model, gs::mesh<gs::axis<"expert">>, gs::in<"GSM">, gs::in<"GS">>::plan.collectives() >= 0);
