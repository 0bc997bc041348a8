// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/base/compiler.hpp>

static_assert(__cplusplus >= 202002L, "older ones are refused");
