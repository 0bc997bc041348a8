// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A fault inside a layer of the library: the line is that of the call, beside the part of the layer.
// expect: gshard: one index or operation has two different dims
// expect: "GSM,ME->GSE"
// expect: at_line<17, .*"gate einsum"
#include <gshard/nn/moe.hpp>
#include <gshard/plan.hpp>

namespace gs = gshard;

inline constexpr auto model = [](auto& m, auto x, auto mask) {
#if defined(MUST_FAIL)
  const auto tokens = gs::einsum<"GSM,FM->GSF">(x, m.param("w", "FM", gs::init::zeros()));
#else
  const auto tokens = x;
#endif
  return gs::nn::moe<"expert">(m, tokens, mask).y;
};
static_assert(gs::program<model, gs::mesh<gs::axis<"expert">>, gs::in<"GSM">, gs::in<"GS">>::plan.collectives() >= 0);
