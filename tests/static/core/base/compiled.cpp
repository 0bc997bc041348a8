// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/base/compiled.hpp>

// Header-only is the default, and excludes the compiled library.
static_assert(GSHARD_HEADER_ONLY == !GSHARD_COMPILED_KERNELS);
