// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Whether programs compile backends, engine and kernels, or take them from an object that is compiled once (the target gshard::kernels).

// 0: header-only. 1: the backends, the engine and all kernels are in cmake/kernels.cpp, which defines GSHARD_COMPILES_KERNELS.
#ifndef GSHARD_COMPILED_KERNELS
#define GSHARD_COMPILED_KERNELS 0
#endif

#if GSHARD_COMPILED_KERNELS
#define GSHARD_HEADER_ONLY 0
#define GSHARD_INLINE
#else
#define GSHARD_HEADER_ONLY 1
#define GSHARD_INLINE inline
#endif

// Virtual functions are declared GSHARD_INLINE in the class. Otherwise g++ emits the vtable in every source of a header-only program.

// 1 where a header gives the bodies of its GSHARD_INLINE functions: everywhere if header-only, else in cmake/kernels.cpp.
#if GSHARD_HEADER_ONLY || defined(GSHARD_COMPILES_KERNELS)
#define GSHARD_HAS_BODIES 1
#else
#define GSHARD_HAS_BODIES 0
#endif

// Whether gshard.hpp, and the compiled object, have the MPI backend: the build says so, else whether the header is there.
#ifndef GSHARD_HAS_MPI
#if __has_include(<mpi.h>)
#define GSHARD_HAS_MPI 1
#else
#define GSHARD_HAS_MPI 0
#endif
#endif
