// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The version of the gshard library. CMake and the package recipes read the three numbers here, and hold no copy.

#include <gshard/core/base/compiler.hpp>

#include <string_view>

/// The version's numbers. Incompatible changes raise the minor number while the major number is 0.
#define GSHARD_VERSION_MAJOR 0
#define GSHARD_VERSION_MINOR 1
#define GSHARD_VERSION_PATCH 0
/// The version as one number for the preprocessor: `#if GSHARD_VERSION >= 10203` is true since version 1.2.3.
#define GSHARD_VERSION (GSHARD_VERSION_MAJOR * 10000 + GSHARD_VERSION_MINOR * 100 + GSHARD_VERSION_PATCH)

#define GSHARD_TEXT_OF_EXPANDED(number) #number
#define GSHARD_TEXT_OF(number) GSHARD_TEXT_OF_EXPANDED(number)

namespace gshard { inline namespace v0 {

/// The version of the library as a text, such as "1.2.3". Processes compare it when they form a cluster.
inline constexpr std::string_view version =
    GSHARD_TEXT_OF(GSHARD_VERSION_MAJOR) "." GSHARD_TEXT_OF(GSHARD_VERSION_MINOR) "." GSHARD_TEXT_OF(GSHARD_VERSION_PATCH);

}}  // namespace gshard::v0

#undef GSHARD_TEXT_OF
#undef GSHARD_TEXT_OF_EXPANDED
