// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// All of gshard, except headers that are included by name: <gshard/io.hpp>, <gshard/report.hpp>, <gshard/run.hpp>,
// <gshard/sim/run/dry_run.hpp>, <gshard/sim/run/run_clock.hpp>, and the headers for other libraries, <gshard/io/hdf5.hpp>,
// <gshard/exec/tensor/eigen.hpp>, <gshard/exec/tensor/xtensor.hpp> and <gshard/cluster/boost_mpi.hpp>.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/exceptions.hpp>

// First, because compilers print the chain of includes that leads to a failed static_assert.
#include <gshard/core/program/check.hpp>

// Planning: specs, the verbs of the language, programs and their plans.
#include <gshard/plan.hpp>
#include <gshard/sim/search/auto_shard.hpp>

// Backends: one device, simulated devices, MPI.
#include <gshard/exec/tensor/cluster.hpp>
#if GSHARD_HAS_MPI
#include <gshard/cluster/mpi_cluster.hpp>
#endif
#include <gshard/exec/tensor/run_scope.hpp>

// Distributed tensors, and views of their shards.
#include <gshard/exec/tensor/local_blocks.hpp>
#include <gshard/exec/tensor/scalapack.hpp>
#include <gshard/exec/tensor/whole_array.hpp>
#include <gshard/exec/tensor/tensor.hpp>

// Executables, and the verbs on tensors.
#include <gshard/models/decode/beam_search.hpp>
#include <gshard/exec/program/check_replicas.hpp>
#include <gshard/exec/program/executable.hpp>
#if GSHARD_HEADER_ONLY
#include <gshard/kernel_headers.hpp>
#endif
#include <gshard/moe/placement/expert_placement.hpp>
#include <gshard/exec/program/parameter_access.hpp>
#include <gshard/moe/placement/placed_experts.hpp>
#include <gshard/eager/attention.hpp>
#include <gshard/eager/broadcast.hpp>
#include <gshard/eager/compare.hpp>
#include <gshard/eager/einsum.hpp>
#include <gshard/eager/evaluate.hpp>
#include <gshard/eager/lookup.hpp>
#include <gshard/eager/map.hpp>
#include <gshard/eager/random.hpp>
#include <gshard/eager/reduce.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/eager/rows.hpp>
#include <gshard/eager/shape.hpp>
#include <gshard/eager/wrong_calls.hpp>

// Models and optimizers.
#include <gshard/models/attention.hpp>
#include <gshard/models/language_model.hpp>
#include <gshard/moe/layer/moe.hpp>
#include <gshard/models/pipeline.hpp>
#include <gshard/models/ring_attention.hpp>
#include <gshard/models/rotary.hpp>
#include <gshard/moe/layer/router.hpp>
#include <gshard/moe/layer/swiglu.hpp>
#include <gshard/models/transformer.hpp>
#include <gshard/train/accumulate.hpp>
#include <gshard/train/adafactor.hpp>
#include <gshard/train/adam.hpp>
#include <gshard/train/clip.hpp>
#include <gshard/train/schedule.hpp>
