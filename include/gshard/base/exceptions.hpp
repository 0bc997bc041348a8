// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/compiler.hpp>

// For headers that throw. Planning, <gshard/plan.hpp>, does not. Compilers show the name of a header that they miss, and stop.
#if !defined(__cpp_exceptions) && !defined(_CPPUNWIND)
#include "gshard: reports errors by exceptions, compile without -fno-exceptions (gshard/plan.hpp does without them)"
#endif
