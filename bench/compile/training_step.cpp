// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The translator's training step, planned: what the compiler is measured on.
#include "../../examples/translate/model.hpp"

static_assert(translate::training_program::plan.count(gshard::op::all_to_all) == 8);  // 4 for each of 2 MoE layers
