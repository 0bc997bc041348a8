// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The name of a mesh axis has a character that separates axes in texts.
// expect: gshard: the name of a mesh axis has no comma, '@', '\?', '\+' or space
#include <gshard/plan.hpp>

namespace gs = gshard;

#if defined(MUST_FAIL)
using axis = gs::axis<"data+model">;
#else
using axis = gs::axis<"data_model">;
#endif

static_assert(gs::mesh<axis>::shape.rank() == 1);
