// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Execution: clusters of one or of simulated devices, distributed tensors, and executables of programs. With header-only use, an executable
// also needs the kernels of its operations. This header has those of the core, <gshard/kernel_headers.hpp> has all.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/exceptions.hpp>

// Clusters.
#include <gshard/exec/tensor/cluster.hpp>
#include <gshard/exec/tensor/run_scope.hpp>

// Distributed tensors. Blocks of an application are included by name: exec/tensor/local_blocks.hpp, exec/tensor/scalapack.hpp.
#include <gshard/exec/tensor/mdspan.hpp>
#include <gshard/exec/tensor/whole_array.hpp>
#include <gshard/exec/tensor/tensor.hpp>

// Executables.
#include <gshard/exec/program/check_replicas.hpp>
#include <gshard/exec/program/executable.hpp>
#include <gshard/exec/program/parameter_access.hpp>
