// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The text of a spec lacks a dim.
// expect: gshard: the text of a spec has commas between dims, and mesh axes of at most 23 characters: P<"G@expert,S,M">
#include <gshard/plan.hpp>

namespace gs = gshard;

#if defined(MUST_FAIL)
void takes(gs::P<"G@expert,,M">);
#else
void takes(gs::P<"G@expert,S,M">);
#endif
