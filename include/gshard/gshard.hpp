// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Everything but io and report, which are asked for by name: <gshard/io.hpp>, <gshard/report.hpp>.

// Planning: specs, the verbs of the language, programs and their plans.
#include <gshard/plan.hpp>

// Which optional libraries are used: the build says so, else whether their headers are there.
#ifndef GSHARD_HAS_MPI
#if __has_include(<mpi.h>)
#define GSHARD_HAS_MPI 1
#else
#define GSHARD_HAS_MPI 0
#endif
#endif
#ifndef GSHARD_HAS_XTENSOR
#if __has_include(<xtensor/xadapt.hpp>) || __has_include(<xtensor/containers/xadapt.hpp>)
#define GSHARD_HAS_XTENSOR 1
#else
#define GSHARD_HAS_XTENSOR 0
#endif
#endif

// Backends: one device, simulated devices, MPI.
#include <gshard/tensor/cluster.hpp>
#if GSHARD_HAS_MPI
#include <gshard/tensor/mpi_cluster.hpp>
#endif

// Distributed tensors, and views of their shards.
#include <gshard/tensor/eigen.hpp>
#include <gshard/tensor/tensor.hpp>
#if GSHARD_HAS_XTENSOR
#include <gshard/tensor/xtensor.hpp>
#endif

// Programs that run, and the verbs on tensors.
#include <gshard/exec/executable.hpp>
#include <gshard/exec/parameter_access.hpp>
#include <gshard/op/einsum.hpp>
#include <gshard/op/map.hpp>
#include <gshard/op/reshard.hpp>
#include <gshard/op/rows.hpp>

// Models and optimisers.
#include <gshard/nn/attention.hpp>
#include <gshard/nn/moe.hpp>
#include <gshard/nn/transformer.hpp>
#include <gshard/optim/adam.hpp>
#include <gshard/optim/schedule.hpp>
