// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The kinds of reductions, such as sum and max.

#include <gshard/core/base/compiler.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 {

/// The function that combines numbers in a reduction, or when a partial result is completed.
enum class reduction : std::uint8_t { sum, max, min, prod };

}}  // namespace gshard::v0
