// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Programs that are traced and planned when they run, with the verbs of all programs. Compile the runtime and the kernels once
// (`gshard::compiled`): with header-only use, each program compiles the planner and all kernels.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/exceptions.hpp>

#include <gshard/plan.hpp>
#include <gshard/runtime/plan_functions.hpp>
#include <gshard/runtime/runtime_executable.hpp>
#include <gshard/runtime/runtime_plan.hpp>
#include <gshard/runtime/runtime_program.hpp>
#include <gshard/runtime/runtime_tensor.hpp>
