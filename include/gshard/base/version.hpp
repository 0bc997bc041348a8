// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The version of the gshard library.

#include <gshard/base/compiler.hpp>

#include <string_view>

namespace gshard { inline namespace v0 {

/// The version of the library, which CMake reads here. Processes compare it when they form a cluster.
inline constexpr std::string_view version = "0.1.0";

}}  // namespace gshard::v0
