// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The headers that most programs need. Others are included by name:
// - <gshard/moe.hpp>: also the placement of experts; <gshard/models.hpp>: also beam search
// - <gshard/sim.hpp>: simulated runs, and the search for shardings; <gshard/report.hpp>; <gshard/testing.hpp>
// - <gshard/io.hpp>, <gshard/io/hdf5.hpp>, <gshard/survive.hpp>
// - <gshard/exec/tensor/local_blocks.hpp>, <gshard/exec/tensor/scalapack.hpp>: blocks of an application
// - <gshard/exec/tensor/eigen.hpp>, <gshard/exec/tensor/xtensor.hpp>, <gshard/cluster/boost_mpi.hpp>: other libraries

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/exceptions.hpp>

// First, because compilers print the chain of includes that leads to a failed static_assert.
#include <gshard/core/program/check.hpp>

#include <gshard/plan.hpp>
#include <gshard/core/program/runs_on.hpp>
#include <gshard/exec.hpp>
#if GSHARD_HAS_MPI
#include <gshard/cluster.hpp>
#endif
#if GSHARD_HEADER_ONLY
#include <gshard/kernel_headers.hpp>
#endif
#include <gshard/eager.hpp>
#include <gshard/moe/layer/moe.hpp>
#include <gshard/moe/layer/router.hpp>
#include <gshard/models/attention.hpp>
#include <gshard/models/language_model.hpp>
#include <gshard/models/pipeline.hpp>
#include <gshard/models/ring_attention.hpp>
#include <gshard/models/rotary.hpp>
#include <gshard/models/transformer.hpp>
#include <gshard/train.hpp>
