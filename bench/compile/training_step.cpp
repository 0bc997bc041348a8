// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plans the translator's training step. The compiler is measured on it.
#include "../../examples/translate/model.hpp"

static_assert(translate::training_program::plan.count(gshard::op::all_to_all) == 8);  // 4 for each of 2 MoE layers
