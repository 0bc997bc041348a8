// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A compiler that is too old prints one sentence and nothing else. Run with the old compilers that are installed.
// expect: gshard: needs (clang 16 or newer, or g.. 12|g.. 12 or newer, or clang 16)
#if defined(MUST_FAIL)
#include <gshard/core/trace/select.hpp>

constexpr auto nor = gshard::this_is_not_there;
#endif
