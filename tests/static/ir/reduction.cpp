// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ir/reduction.hpp>

// What is pending is a sum unless something else is said.
static_assert(gshard::reduction{} == gshard::reduction::sum);
