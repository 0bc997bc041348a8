// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The verbs of all operations.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core.hpp>

// In an order in which no header is first included by another one.
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
