// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The paper's verb names an axis that the mesh does not have.
// expect: gshard: a partition spec names an axis that the mesh does not have
// expect: unknown_axis<.*"exprt"
// expect: in_tensor<.*"split"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
inline constexpr auto model = [](auto&, auto x) { return gs::split<"exprt">(x, 0); };
#else
inline constexpr auto model = [](auto&, auto x) { return gs::split<"expert">(x, 0); };
#endif
using compiled = gs::program<model, gs::mesh<gs::axis<"expert">>, in<"EM", P<none, "expert">>>;
static_assert(compiled::plan.count(gs::op::all_to_all) == 1);
