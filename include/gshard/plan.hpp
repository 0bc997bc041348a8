// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Planning alone; needs only the standard library. Write a program, compile it for a mesh, assert its communication.

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

#include <gshard/ops/along/cumsum.hpp>
#include <gshard/ops/along/sort.hpp>
#include <gshard/ops/attention/attention.hpp>
#include <gshard/ops/check/check_finite.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/index/dynamic_slice.hpp>
#include <gshard/ops/index/one_hot.hpp>
#include <gshard/ops/loop/loop.hpp>
#include <gshard/ops/loop/scan.hpp>
#include <gshard/ops/random/dropout.hpp>
#include <gshard/ops/random/random.hpp>
#include <gshard/ops/reduce/reduce.hpp>
#include <gshard/ops/reduce/argmax.hpp>
#include <gshard/ops/reduce/logsumexp.hpp>
#include <gshard/ops/rows/cross_entropy.hpp>
#include <gshard/ops/rows/layer_norm.hpp>
#include <gshard/ops/rows/softmax.hpp>
#include <gshard/ops/window/slice.hpp>
#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/convolution.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/pool.hpp>
#include <gshard/ops/window/reverse.hpp>
#include <gshard/ops/window/roll.hpp>
#include <gshard/ops/shards/collectives.hpp>
#include <gshard/ops/shards/per_shard.hpp>
#include <gshard/ops/user/call_on_shards.hpp>
#include <gshard/ops/user/custom.hpp>

#include <gshard/moe/routing/gating.hpp>
#include <gshard/moe/routing/chunks.hpp>
#include <gshard/moe/routing/expert_groups.hpp>
#include <gshard/moe/routing/dropless.hpp>
#include <gshard/moe/routing/expert_replicas.hpp>

#include <gshard/core/program/program.hpp>
