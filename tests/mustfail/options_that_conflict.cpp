// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Experts without slots, with a number of slots: the error names both options.
// expect: gshard: an option has no effect together with another one, or with a second mesh axis
// expect: conflicting_options<.*"\.experts dropless and \.routing\.slots"
// expect: "moe"
#include <gshard/moe/layer/moe.hpp>
#include <gshard/plan.hpp>

namespace gs = gshard;

#if defined(MUST_FAIL)
inline constexpr gs::nn::moe_options options{.routing = {.slots = {2}}, .experts = gs::experts::dropless()};
#else
inline constexpr gs::nn::moe_options options{.experts = gs::experts::dropless()};
#endif
inline constexpr auto model = [](auto& m, auto x, auto mask) { return gs::nn::moe<"expert">(m, x, mask, options).y; };
static_assert(gs::program<model, gs::mesh<gs::axis<"expert">>, gs::in<"GSM">, gs::in<"GS">>::plan.collectives() >= 0);
