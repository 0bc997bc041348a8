// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A device order for a tensor without a sharded dim.
// expect: gshard: an order of devices needs a sharded dim: name its axis in place of any
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::any, gs::device_order, gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
using layout = P<any, none, device_order<1, 0>>;
#else
using layout = P<any, "x", device_order<1, 0>>;
#endif

static_assert(layout::rank == 2);

inline constexpr auto model = [](auto&, auto x) { return x + x; };
using compiled = gs::program<model, gs::mesh<gs::axis<"x", 2>>, in<"AB", layout>>;
#if !defined(MUST_FAIL)
static_assert(compiled::plan.at(compiled::plan.inputs[0].value).layout.order == 1);
#else
constexpr auto steps = compiled::plan.steps.size();
#endif
