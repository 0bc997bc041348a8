// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// All that most programs use. Included by name: <gshard/sim.hpp>, <gshard/report.hpp>, <gshard/io.hpp>, <gshard/survive.hpp>,
// <gshard/testing.hpp>, and the headers for other libraries, <gshard/io/hdf5.hpp>, <gshard/exec/tensor/eigen.hpp>,
// <gshard/exec/tensor/xtensor.hpp> and <gshard/cluster/boost_mpi.hpp>.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/exceptions.hpp>

// First, because compilers print the chain of includes that leads to a failed static_assert.
#include <gshard/core/program/check.hpp>

#include <gshard/plan.hpp>
#include <gshard/sim/search/auto_shard.hpp>

#include <gshard/exec.hpp>
#if GSHARD_HAS_MPI
#include <gshard/cluster.hpp>
#endif
#if GSHARD_HEADER_ONLY
#include <gshard/kernel_headers.hpp>
#endif
#include <gshard/eager.hpp>
#include <gshard/moe.hpp>
#include <gshard/models.hpp>
#include <gshard/train.hpp>
