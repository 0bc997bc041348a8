// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A static extent is not a multiple of the axis that shards it.
// expect: gshard: a static extent is not a multiple of the static extents of the mesh axes that shard it
// expect: static_extent<.*"E".*, 6>
// expect: divided_by<4>
// expect: in_tensor<.*"w"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
constexpr int experts = 6;
#else
constexpr int experts = 8;
#endif

inline constexpr auto model = [](auto& m, auto x) {
  return gs::einsum<"EGM,EMH->EGH">(x, m.param("w", "EMH", P<"expert", none, none>{}, gs::init::zeros()));
};
using compiled = gs::program<model, gs::mesh<gs::axis<"expert", 4>>, in<"EGM">, gs::extent<'E', experts>>;
static_assert(compiled::plan.collectives() == 0);
