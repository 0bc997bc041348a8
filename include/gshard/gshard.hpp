// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// All of gshard, except headers that are included by name: <gshard/io.hpp>, <gshard/report.hpp>, <gshard/run.hpp>,
// <gshard/sim/dry_run.hpp>, <gshard/sim/run_clock.hpp>, and the headers for other libraries, <gshard/io/hdf5.hpp>,
// <gshard/tensor/eigen.hpp>, <gshard/tensor/xtensor.hpp> and <gshard/tensor/boost_mpi.hpp>.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/base/compiled.hpp>
#include <gshard/base/exceptions.hpp>

// First, because compilers print the chain of includes that leads to a failed static_assert.
#include <gshard/pass/check.hpp>

// Planning: specs, the verbs of the language, programs and their plans.
#include <gshard/plan.hpp>
#include <gshard/pass/search/auto_shard.hpp>

// Backends: one device, simulated devices, MPI.
#include <gshard/tensor/cluster.hpp>
#if GSHARD_HAS_MPI
#include <gshard/tensor/mpi_cluster.hpp>
#endif
#include <gshard/tensor/run_scope.hpp>

// Distributed tensors, and views of their shards.
#include <gshard/tensor/local_blocks.hpp>
#include <gshard/tensor/scalapack.hpp>
#include <gshard/tensor/whole_array.hpp>
#include <gshard/tensor/tensor.hpp>

// Executables, and the verbs on tensors.
#include <gshard/exec/beam_search.hpp>
#include <gshard/exec/check_replicas.hpp>
#include <gshard/exec/executable.hpp>
#if GSHARD_HEADER_ONLY
#include <gshard/exec/kernel_headers.hpp>
#endif
#include <gshard/exec/expert_placement.hpp>
#include <gshard/exec/parameter_access.hpp>
#include <gshard/exec/placed_experts.hpp>
#include <gshard/op/attention.hpp>
#include <gshard/op/broadcast.hpp>
#include <gshard/op/compare.hpp>
#include <gshard/op/einsum.hpp>
#include <gshard/op/evaluate.hpp>
#include <gshard/op/lookup.hpp>
#include <gshard/op/map.hpp>
#include <gshard/op/random.hpp>
#include <gshard/op/reduce.hpp>
#include <gshard/op/reshard.hpp>
#include <gshard/op/rows.hpp>
#include <gshard/op/shape.hpp>
#include <gshard/op/wrong_calls.hpp>

// Models and optimizers.
#include <gshard/nn/attention.hpp>
#include <gshard/nn/language_model.hpp>
#include <gshard/nn/moe.hpp>
#include <gshard/nn/pipeline.hpp>
#include <gshard/nn/ring_attention.hpp>
#include <gshard/nn/rotary.hpp>
#include <gshard/nn/router.hpp>
#include <gshard/nn/swiglu.hpp>
#include <gshard/nn/transformer.hpp>
#include <gshard/optim/accumulate.hpp>
#include <gshard/optim/adafactor.hpp>
#include <gshard/optim/adam.hpp>
#include <gshard/optim/clip.hpp>
#include <gshard/optim/schedule.hpp>
