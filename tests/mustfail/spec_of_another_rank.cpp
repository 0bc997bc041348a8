// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A partition spec has one entry less than its tensor has letters.
// expect: gshard: a tensor has another number of dims than its partition spec
// expect: in_operation<.*"w"
// expect: expected_rank<3>
// expect: actual_rank<2>
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
using layout = P<"model", none>;
#else
using layout = P<"model", none, none>;
#endif

inline constexpr auto model = [](auto& m, auto x) {
  return gs::einsum<"BM,HMD->BHD">(x, m.param("w", "HMD", layout{}, gs::init::zeros()));
};
static_assert(gs::program<model, gs::mesh<gs::axis<"model">>, in<"BM">>::plan.collectives() == 0);
