// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Stops the compilation of headers that throw if exceptions are disabled.
//
// Planning, <gshard/plan.hpp>, does not throw. The error is a missing header whose name is the message. Compilers stop there.

#include <gshard/core/base/compiler.hpp>

#if !defined(__cpp_exceptions) && !defined(_CPPUNWIND)
#include "gshard: reports errors by exceptions, compile without -fno-exceptions (gshard/plan.hpp does without them)"
#endif
