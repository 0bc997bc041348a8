// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Planning alone; needs only the standard library. Write a program, compile it for a mesh, assert its communication.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

// First, because compilers print the chain of includes that leads to a failed static_assert.
#include <gshard/core/base/dual.hpp>
#include <gshard/core/program/check.hpp>

#include <gshard/core.hpp>
#include <gshard/ops.hpp>

// The operations that route tokens to experts. Layers of experts are in <gshard/moe.hpp>.
#include <gshard/moe/routing/gating.hpp>
#include <gshard/moe/routing/chunks.hpp>
#include <gshard/moe/routing/expert_groups.hpp>
#include <gshard/moe/routing/dropless.hpp>
#include <gshard/moe/routing/expert_replicas.hpp>
