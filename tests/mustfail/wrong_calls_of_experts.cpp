// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls that the layer of experts and its router do not take: one sentence each, and nothing else.
// expect: gshard: nn::moe<"expert">\(m, x, mask, \{\.k = 2\}\) takes a mesh axis, the first argument of the model, two tens
// expect: gshard: nn::moe<"expert">\(m, x, mask, \{\.k = 2\}\) takes a mesh axis, the first argument of the model, two tens
// expect: gshard: nn::route\(m, x, mask, \{\.k = 2\}, \{\}\) takes the first argument of the model, two tensors of a program, an
// expect: gshard: nn::route\(m, x, mask, \{\.k = 2\}, \{\}\) takes the first argument of the model, two tensors of a program, an
// expect: gshard: nn::update_bias\(m, load, rate\) takes the first argument of the model, a tensor of a program and a numb
// expect: gshard: nn::update_bias\(m, load, rate\) takes the first argument of the model, a tensor of a program and a numb
// expect: gshard: nn::measure_balance\(load, overflow\) takes two tensors of a program, results of nn::moe
#include <gshard/nn/moe.hpp>
#include <gshard/nn/router.hpp>
#include <gshard/plan.hpp>

namespace gs = gshard;
namespace nn = gshard::nn;

inline constexpr auto model = [](auto& m, auto x, auto mask) {
  const auto use = [](const auto&...) {};
#if defined(MUST_FAIL)
  const auto layer = nn::moe<"expert">(x, m, mask);
  use(nn::moe(m, x, mask).y);
  use(nn::route(m, x).combine);
  use(nn::route(m, x, mask, nn::router_options{}).combine);
  nn::update_bias(m, layer.load);
  nn::update_bias(m, x, x);
  use(nn::measure_balance(layer).busiest);
  use(nn::measure_balance(layer.load, layer.overflow).busiest);
#else
  const auto layer = nn::moe<"expert">(m, x, mask);
  const nn::moe_options options{.k = 1};
  use(nn::moe<"expert">(m.scope("other"), x, mask, options).y);
  use(nn::route(m.scope("route"), x, mask).combine);
  use(nn::route(m.scope("sigmoid"), x, mask, {}, nn::router_options{.score = nn::gate_score::sigmoid}).combine);
  nn::update_bias(m, layer.load, 0.1);
  use(nn::measure_balance(layer.load, layer.overflow).busiest);
#endif
  return layer.y;
};
static_assert(gs::program<model, gs::mesh<gs::axis<"expert">>, gs::in<"GSM">, gs::in<"GS">>::plan.collectives() >= 0);
