// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// gshard reports errors by exceptions; planning alone does not (tests/static/core/plan/plan_without_exceptions.cpp).
// flags: -fno-exceptions
// expect: gshard: reports errors by exceptions, compile without -fno-exceptions
#include <gshard/gshard.hpp>

gshard::error found("nothing follows the sentence");
#if defined(MUST_FAIL)
nor this;
#endif
