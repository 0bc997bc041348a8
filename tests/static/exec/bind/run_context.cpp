// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/run_context.hpp>

// By default, a run is the first step of a program with seed 0.
static_assert(gshard::run_context().seed == 0 && gshard::run_context().step == 0);
