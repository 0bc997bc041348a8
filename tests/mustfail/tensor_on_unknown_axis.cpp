// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: gshard: a partition spec names an axis that the mesh does not have
// expect: unknown_axis<
#include <gshard/gshard.hpp>

namespace gs = gshard;
using gs::none;
using gs::P;
using mesh = gs::mesh<gs::axis<"data">>;

int main() {
  const std::vector<float> data(12);
#if defined(MUST_FAIL)
  gs::from_global<float, P<"dta", none>>(gs::simulate<mesh>(2), {3, 4}, data);
#else
  gs::from_global<float, P<"data", none>>(gs::simulate<mesh>(2), {3, 4}, data);
#endif
}
