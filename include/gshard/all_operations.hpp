// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The list of all operations, for tables of all kernels, files that name operations, and tests.

#include <gshard/moe/routing/expert_groups.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/moe/routing/grouped_product.hpp>
#include <gshard/moe/routing/routing.hpp>
#include <gshard/ops.hpp>
#include <gshard/train/adam.hpp>
#include <gshard/train/gradient_wire.hpp>

namespace gshard { inline namespace v0 {

#define GSHARD_CONSTANTS
inline constexpr op_ref all_operations[]{
#include <gshard/operations.def>
};
#undef GSHARD_CONSTANTS

}}  // namespace gshard::v0
