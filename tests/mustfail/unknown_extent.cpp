// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A search of shardings for a program with an unknown extent.
// expect: gshard: to choose shardings, the extent of every letter and of every mesh axis must be known
// expect: extent_of<.*"H"
#include <gshard/plan.hpp>
#include <gshard/sim/search/auto_shard.hpp>

namespace gs = gshard;
using gs::extent, gs::in;

#if defined(MUST_FAIL)
constexpr char letter = 'X';
#else
constexpr char letter = 'H';
#endif

inline constexpr auto model = [](auto& m, auto x) {
  return gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", gs::init::zeros()));
};
using compiled = gs::auto_shard<model, gs::mesh<gs::axis<"x", 4>>, in<"BM">, extent<'B', 4>, extent<'M', 8>, extent<letter, 8>>;
static_assert(compiled::plan.steps.size() > 0);
