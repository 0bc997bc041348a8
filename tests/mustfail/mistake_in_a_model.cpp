// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A mistake in the body of a model is reported itself, not as a wrong number of inputs.
// expect: gshard: layer_norm\(x, gamma, beta, epsilon = 1e-5\) takes three tensors
// expect: accepts<.*symbol>
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"data">>;

#if defined(MUST_FAIL)
inline constexpr auto model = [](auto&, auto a, auto b) { return gs::layer_norm(a) + b; };
#else
inline constexpr auto model = [](auto&, auto a, auto b) { return gs::layer_norm(a, b, b) + b; };
#endif
static_assert(gs::program<model, mesh, in<"AB">, in<"B">>::plan.count(gs::op::layer_norm) == 1);
