// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The partition spec of a parameter is after its initial values. Other members of a scope are called wrongly as well.
// expect: gshard: m.param\(name, "M@data,H", init::zeros\(\)\) takes
// expect: gshard: m.scope\(name\)
// expect: gshard: m.state\(prefix, parameter\)
// expect: gshard: m.loss\(term\)
// expect: gshard: m.objective\(main, weight = 1\)
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"data">>;

inline constexpr auto model = [](auto& m, auto x) {
#if defined(MUST_FAIL)
  auto w = m.scope(1.5).param("w", "AB", gs::init::zeros(), P<"data", none>{});
  (void)m.state(x);
  m.loss(3.0);
  return m.objective(x, "weight");
#else
  auto w = m.scope(1).param("w", "AB", P<"data", none>{}, gs::init::zeros());
  (void)m.state("s.", w);
  m.loss(gs::sum(w));
  return m.objective(gs::sum(w + x), 0.5);
#endif
};
static_assert(gs::program<model, mesh, in<"AB">>::plan.count(gs::op::all_reduce) == 1);
