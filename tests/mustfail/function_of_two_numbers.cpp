// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The numbers of arguments of the function and of tensors differ in a map.
// expect: gshard: the function of map takes as many numbers as map is given tensors
// expect: operands_given<1>
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"data">>;

inline constexpr auto model = [](auto&, auto x) {
#if defined(MUST_FAIL)
  return gs::map<[](auto v, auto w) { return v * w; }>(x);
#else
  return gs::map<[](auto v, auto w) { return v * w; }>(x, x);
#endif
};
static_assert(gs::program<model, mesh, in<"AB">>::plan.count(gs::op::map) == 1);
