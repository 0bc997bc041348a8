// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/comm/simulator/sweep_row.hpp>

static_assert(gshard::sweep_row{}.fits && gshard::sweep_row{}.capacity == 0, "unless said, memory is not limited");
