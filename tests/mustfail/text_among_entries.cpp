// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A spec has a text among its entries.
// expect: gshard: a spec is one text, P<"B@data,M">, or a list of entries, whose axes have at most 23 characters
#include <gshard/plan.hpp>

namespace gs = gshard;

#if defined(MUST_FAIL)
void takes(gs::P<"B@data,M", gs::none>);
#else
void takes(gs::P<"B@data,M">);
#endif
