// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A pipeline whose number of stages, and therefore of ticks, is unknown at compile time.
// expect: gshard: the stages, repeats and microbatches of a pipeline are known extents
#include <gshard/plan.hpp>

#include <gshard/models/pipeline.hpp>

namespace gs = gshard;

inline constexpr auto layer = [](auto y, auto w) { return y + gs::einsum<"SBF,SFG->SBG">(y, w); };
inline constexpr auto model = [](auto& m, auto x, auto w) { return gs::nn::pipeline(m, {}, layer, x, w); };
#if defined(MUST_FAIL)
using compiled = gs::program<model, gs::mesh<gs::axis<"stage">>, gs::in<"MBF">, gs::in<"SFF">, gs::extent<'M', 4>>;
#else
using compiled = gs::program<model, gs::mesh<gs::axis<"stage">>, gs::in<"MBF">, gs::in<"SFF">, gs::extent<'M', 4>, gs::extent<'S', 2>>;
#endif
static_assert(compiled::plan.collectives() == 0);
