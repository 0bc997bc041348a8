// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/reduction.hpp>

// The default reduction is the sum.
static_assert(gshard::reduction{} == gshard::reduction::sum);
