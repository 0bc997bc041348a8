// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// No sharding of a weight fits into the memory of a device.
// expect: gshard: no sharding was found that keeps every device within its memory limit
// expect: needed_mebibytes<[0-9]+>
// expect: allowed_mebibytes<1>
#include <gshard/plan.hpp>
#include <gshard/sim/search/auto_shard.hpp>

namespace gs = gshard;
using gs::extent, gs::in;

#if defined(MUST_FAIL)
constexpr int mebibytes = 1;
#else
constexpr int mebibytes = 2;
#endif

inline constexpr auto model = [](auto& m, auto x) {
  return gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", gs::init::zeros()));
};
using compiled = gs::auto_shard<model, gs::mesh<gs::axis<"x", 4>>, in<"BM">, extent<'B', 4>, extent<'M', 1024>, extent<'H', 1024>,
                                gs::memory_limit<(mebibytes << 20)>>;
static_assert(compiled::choice.exact && compiled::plan.steps.size() > 0);
