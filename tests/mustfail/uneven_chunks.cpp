// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Experts in groups. The number of chunks does not divide the known number of token groups. The error names the layer, not its verbs.
// expect: gshard: the number of chunks of token groups does not divide the number of token groups
// expect: static_extent<.*"G".*, 4>
// expect: divided_by<3>
// expect: in_operation<.*"moe"
// expect: at_line<19
#include <gshard/moe/layer/moe.hpp>
#include <gshard/plan.hpp>

namespace gs = gshard;

#if defined(MUST_FAIL)
inline constexpr gs::nn::moe_options options{.experts = gs::experts::in_groups(2), .chunks = 3};
#else
inline constexpr gs::nn::moe_options options{.experts = gs::experts::in_groups(2), .chunks = 2};
#endif
inline constexpr auto model = [](auto& m, auto x, auto mask) {
  return gs::nn::moe<"expert">(m, x, mask, options).y;
};
using mesh = gs::mesh<gs::axis<"expert">>;
static_assert(gs::program<model, mesh, gs::in<"GSM">, gs::in<"GS">, gs::extent<'G', 4>>::plan.collectives() >= 0);
