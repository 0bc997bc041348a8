// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Stops the compilation on compilers and language versions that gshard does not support.
//
// The error is a missing header whose name is the message. Compilers stop there, so nothing follows the message.

// The oldest compilers that can run the planner. Apple's clang has version numbers of its own.
#if defined(__clang__) && !defined(__apple_build_version__)
#if __clang_major__ < 16
#include "gshard: needs clang 16 or newer, or g++ 12 or newer"
#endif
#elif defined(__GNUC__) && !defined(__clang__)
#if __GNUC__ < 12
#include "gshard: needs g++ 12 or newer, or clang 16 or newer"
#endif
#endif
#if __cplusplus < 202002L && !defined(_MSVC_LANG)
#include "gshard: needs C++20, -std=c++20 or newer"
#endif
