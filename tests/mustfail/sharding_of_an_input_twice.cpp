// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An input has its sharding in the text of its dims, and as a spec.
// expect: gshard: a tensor has its sharding twice: in the text of its dims, and as a spec
// expect: in_tensor<.*"BM"
#include <gshard/plan.hpp>

namespace gs = gshard;

#if defined(MUST_FAIL)
using rows = gs::in<"B@data,M", gs::P<"data", gs::none>>;
#else
using rows = gs::in<"B@data,M">;
#endif
inline constexpr auto model = [](auto&, auto x) { return gs::relu(x); };
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, rows>::plan.collectives() == 0);
