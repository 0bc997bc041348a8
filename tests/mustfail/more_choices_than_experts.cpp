// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A token chooses more experts than there are.
// expect: gshard: invalid range, count, window or priority: reversed, out of bounds, or given twice
// expect: in_operation<.*"top_k_gating"
// expect: range_given<.*".k, experts".*, 9, 8>
// expect: at_line<18
#include <gshard/moe/layer/moe.hpp>
#include <gshard/plan.hpp>

namespace gs = gshard;

#if defined(MUST_FAIL)
constexpr int k = 9;
#else
constexpr int k = 8;
#endif
inline constexpr auto model = [](auto& m, auto x, auto mask) {
  return gs::nn::moe<"expert">(m, x, mask, {.routing = {.k = k}}).y;
};
using compiled = gs::program<model, gs::mesh<gs::axis<"expert">>, gs::in<"GSM">, gs::in<"GS">, gs::extent<'E', 8>>;
static_assert(compiled::plan.collectives() >= 0);
