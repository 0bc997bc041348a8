// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A model returns a value that is no tensor.
// expect: gshard: a model returns a tensor, several as a std::tuple or a std::array, or nothing
// expect: actual_type<int>
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"data">>;

inline constexpr auto model = [](auto&, auto x) {
  const auto y = gs::relu(x);
#if defined(MUST_FAIL)
  return y.rank();
#else
  return y;
#endif
};
static_assert(gs::program<model, mesh, in<"AB">>::plan.count(gs::op::map) == 1);
