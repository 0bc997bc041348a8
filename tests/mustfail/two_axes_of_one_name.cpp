// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two axes of a mesh have the same name.
// expect: gshard: two axes of a mesh have the same name
// expect: mesh<.*axis<.*"data".*axis<.*"data"
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
using mesh = gs::mesh<gs::axis<"data">, gs::axis<"data">>;
#else
using mesh = gs::mesh<gs::axis<"data">, gs::axis<"model">>;
#endif

static_assert(mesh::shape.rank() == 2);
