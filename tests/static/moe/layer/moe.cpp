// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The communication of training steps of mixture-of-experts layers: kinds of experts do not change it.
#include <gshard/moe/layer/moe.hpp>
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P;

namespace {

template <bool Swiglu, bool Biases, int Shared>
inline constexpr auto step = [](auto& m, auto x, auto mask, auto rate) {
  const gs::nn::moe_options options{.swiglu = Swiglu, .biases = Biases, .shared_experts = Shared};
  auto error = x + gs::nn::moe<"expert">(m, x, mask, options).y - 3.0 * x;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
  return loss;
};
using mesh = gs::mesh<gs::axis<"expert">>;
template <bool Swiglu, bool Biases, int Shared>
constexpr gs::plan_view plan =
    gs::program<step<Swiglu, Biases, Shared>, mesh, in<"GSM", P<"expert", none, none>>, in<"GS", P<"expert", none>>, in<"">>::plan;

constexpr gs::plan_view plain = plan<false, false, 0>;
static_assert(plain.count(op::all_to_all) == 3);
static_assert(plan<true, false, 0>.count(op::all_to_all) == 3 && plan<true, false, 0>.collectives() == plain.collectives());
static_assert(plan<true, true, 0>.collectives() == plain.collectives());
// Shared experts are replicated: the gradients of their three matrices are summed.
static_assert(plan<true, true, 1>.count(op::all_to_all) == 3);
static_assert(plan<true, false, 1>.collectives() == plain.collectives() + 3);

}  // namespace
