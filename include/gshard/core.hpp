// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The core: meshes, specs, the verbs that every program may need, gradients, and the passes that make a plan. Needs only the standard
// library.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/compiler.hpp>
#include <gshard/core/base/version.hpp>

// First, because compilers print the chain of includes that leads to a failed static_assert.
#include <gshard/core/base/dual.hpp>
#include <gshard/core/program/check.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/map.hpp>

#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/ir/spec.hpp>

// In an order in which no header is first included by another one.
#include <gshard/core/trace/assignment.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/broadcast.hpp>
#include <gshard/core/trace/complex.hpp>
#include <gshard/core/trace/parameter_scope.hpp>
#include <gshard/core/trace/iota.hpp>
#include <gshard/core/trace/named_scope.hpp>
#include <gshard/core/trace/refused_operators.hpp>
#include <gshard/core/trace/remat.hpp>
#include <gshard/core/trace/select.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/core/trace/wire.hpp>

#include <gshard/core/grad/differentiate.hpp>

#include <gshard/core/program/program.hpp>
