// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/run_context.hpp>

// A run that is not told otherwise is the first step of a program whose seed is 0.
static_assert(gshard::run_context().seed == 0 && gshard::run_context().step == 0);
