// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Backends and runtime, compiled once for programs with GSHARD_COMPILED_KERNELS=1. @see gshard/core/base/compiled.hpp
#undef GSHARD_COMPILED_KERNELS
#define GSHARD_COMPILED_KERNELS 1
#define GSHARD_COMPILES_RUNTIME
#include <gshard/gshard.hpp>
#include <gshard/cluster/datagram_watch.hpp>
#include <gshard/models.hpp>
#include <gshard/moe.hpp>
#include <gshard/report.hpp>
#include <gshard/runtime.hpp>
#include <gshard/sim/search/auto_shard.hpp>
#include <gshard/exec/tensor/local_blocks.hpp>
#include <gshard/exec/tensor/scalapack.hpp>
#include <gshard/exec/program/replicate.hpp>
#include <gshard/testing/check_shardings.hpp>
