// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program gets an argument that is none of its options.
// expect: gshard: program<model, mesh, ...> takes a mesh, and then inputs \(in<...>\) and options
// expect: actual_type<int>
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"data">>;

inline constexpr auto model = [](auto&, auto x) { return gs::relu(x); };
#if defined(MUST_FAIL)
using options = int;
#else
using options = gs::visible;
#endif
static_assert(gs::program<model, mesh, in<"AB">, options>::plan.count(gs::op::map) == 1);
