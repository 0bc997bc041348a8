// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An input is sharded over one axis in two dims.
// expect: gshard: a partition spec uses one mesh axis twice
// expect: repeated_axis<.*"data"
// expect: in_tensor<.*"BM"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
using layout = P<"data", "data">;
#else
using layout = P<"data", none>;
#endif

inline constexpr auto model = [](auto&, auto x) { return gs::relu(x); };
using compiled = gs::program<model, gs::mesh<gs::axis<"data">>, in<"BM", layout>>;
static_assert(compiled::plan.collectives() == 0);
