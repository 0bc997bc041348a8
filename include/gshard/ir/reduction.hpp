// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/compiler.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 {

/// How several numbers become one: what a reduction computes, and what a pending result still waits for.
enum class reduction : std::uint8_t { sum, max, min, prod };

}}  // namespace gshard::v0
