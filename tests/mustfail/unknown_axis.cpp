// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A parameter is sharded over an axis that the mesh does not have.
// expect: gshard: a partition spec names an axis that the mesh does not have
// expect: unknown_axis<.*"exprt"
// expect: mesh_axes<.*"data".*"expert"
// expect: in_tensor<.*"layer.wi"
// expect: at_line<20>
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
using layout = P<"exprt", none, none>;
#else
using layout = P<"expert", none, none>;
#endif

inline constexpr auto model = [](auto& m, auto x) {
  return gs::einsum<"EGM,EMH->EGH">(x, m.scope("layer").param("wi", "EMH", layout{}, gs::init::zeros()));
};
using mesh = gs::mesh<gs::axis<"data">, gs::axis<"expert">>;
static_assert(gs::program<model, mesh, in<"EGM">>::plan.collectives() == 0);
