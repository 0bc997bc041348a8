// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The verbs of all operations.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core.hpp>

#define GSHARD_VERBS
#include <gshard/operations.def>
#undef GSHARD_VERBS
