// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A device order does not have the devices of the mesh.
// expect: gshard: a partition spec orders devices that are not those of the mesh, each once, or the mesh's extents are not static
// expect: in_tensor<.*"annotate"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::device_order, gs::in, gs::P;

#if defined(MUST_FAIL)
using layout = P<"x", device_order<1, 0, 2>>;
#else
using layout = P<"x", device_order<1, 0>>;
#endif

inline constexpr auto model = [](auto&, auto x) { return gs::annotate<layout>(x); };
using compiled = gs::program<model, gs::mesh<gs::axis<"x", 2>>, in<"B", P<"x">>>;
static_assert(compiled::plan.count(gs::op::collective_permute) == 1 && compiled::plan.collectives() == 1);
