// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A non-integer option is out of range: the error names it, without a number.
// expect: gshard: invalid range, count, window or priority: reversed, out of bounds, or given twice
// expect: in_operation<.*"route"
// expect: range_given<[^,]*".jitter"[})]*>
// expect: at_line<18
#include <gshard/moe/layer/moe.hpp>
#include <gshard/plan.hpp>

namespace gs = gshard;

#if defined(MUST_FAIL)
constexpr double jitter = 1.5;
#else
constexpr double jitter = 0.5;
#endif
inline constexpr auto model = [](auto& m, auto x, auto mask) {
  return gs::nn::moe<"expert">(m, x, mask, {.routing = {.jitter = jitter}}).y;
};
static_assert(gs::program<model, gs::mesh<gs::axis<"expert">>, gs::in<"GSM">, gs::in<"GS">>::plan.collectives() >= 0);
