// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/base/exceptions.hpp>

static_assert(__cpp_exceptions, "without them it is refused: mustfail/no_exceptions.cpp");
