// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A fault inside a layer of the library: the error has the line of the call, and the part of the layer.
// expect: gshard: invalid range, count, window or priority: reversed, out of bounds, or given twice
// expect: "route"
// expect: at_line<17, .*"gate other"
#include <gshard/moe/layer/moe.hpp>
#include <gshard/plan.hpp>

namespace gs = gshard;

inline constexpr auto model = [](auto& m, auto x, auto mask) {
#if defined(MUST_FAIL)
  constexpr gs::nn::moe_options options{.routing = {.k = -1}};
#else
  constexpr gs::nn::moe_options options{.routing = {.k = 1}};
#endif
  return gs::nn::moe<"expert">(m, x, mask, options).y;
};
static_assert(gs::program<model, gs::mesh<gs::axis<"expert">>, gs::in<"GSM">, gs::in<"GS">>::plan.collectives() >= 0);
