// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Checks for users' tests: every sharding of an operation, and programs with the results that one device gives.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/testing/check_shardings.hpp>
#include <gshard/testing/run_program.hpp>
