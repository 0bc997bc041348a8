// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Planning alone; needs only the standard library. Write a program, compile it for a mesh, assert its communication.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/base/compiler.hpp>
#include <gshard/base/version.hpp>

// First, because compilers print the chain of includes that leads to a failed static_assert.
#include <gshard/base/dual.hpp>
#include <gshard/pass/check.hpp>
#include <gshard/trace/builder.hpp>
#include <gshard/trace/map.hpp>

#include <gshard/ir/mesh.hpp>
#include <gshard/ir/spec.hpp>

#include <gshard/trace/along.hpp>
#include <gshard/trace/assignment.hpp>
#include <gshard/trace/attention.hpp>
#include <gshard/trace/broadcast.hpp>
#include <gshard/trace/call_on_shards.hpp>
#include <gshard/trace/check_finite.hpp>
#include <gshard/trace/chunks.hpp>
#include <gshard/trace/complex.hpp>
#include <gshard/trace/convolution.hpp>
#include <gshard/trace/custom.hpp>
#include <gshard/trace/einsum.hpp>
#include <gshard/trace/dynamic_slice.hpp>
#include <gshard/trace/embedding.hpp>
#include <gshard/trace/expert_groups.hpp>
#include <gshard/trace/expert_replicas.hpp>
#include <gshard/trace/gating.hpp>
#include <gshard/trace/loop.hpp>
#include <gshard/trace/shard_map.hpp>
#include <gshard/trace/map.hpp>
#include <gshard/trace/named_scope.hpp>
#include <gshard/trace/parameter_scope.hpp>
#include <gshard/trace/random.hpp>
#include <gshard/trace/reduce.hpp>
#include <gshard/trace/remat.hpp>
#include <gshard/trace/rows.hpp>
#include <gshard/trace/scan.hpp>
#include <gshard/trace/select.hpp>
#include <gshard/trace/shape.hpp>
#include <gshard/trace/window.hpp>
#include <gshard/trace/wire.hpp>
#include <gshard/trace/wrong_calls.hpp>
#include <gshard/trace/wrong_math.hpp>
#include <gshard/trace/wrong_routing.hpp>

#include <gshard/grad/differentiate.hpp>
#include <gshard/pass/program.hpp>
