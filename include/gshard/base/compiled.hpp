// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Whether programs compile backends, engine and kernels, or take them from two objects that are compiled once (the target gshard::kernels).

// 0: header-only. 1: backends and engine are in cmake/engine.cpp, which defines GSHARD_COMPILES_ENGINE, and kernels in cmake/kernels.cpp.
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

// 1 where a header gives the bodies of its GSHARD_INLINE functions: everywhere if header-only, else in cmake/engine.cpp.
#if GSHARD_HEADER_ONLY || defined(GSHARD_COMPILES_ENGINE)
#define GSHARD_HAS_BODIES 1
#else
#define GSHARD_HAS_BODIES 0
#endif

// Whether gshard.hpp, and the compiled objects, have the MPI backend: the build says so, else whether the header is there.
#ifndef GSHARD_HAS_MPI
#if __has_include(<mpi.h>)
#define GSHARD_HAS_MPI 1
#else
#define GSHARD_HAS_MPI 0
#endif
#endif

// Every source refers to a symbol whose name tells for what it was compiled, and cmake/engine.cpp defines its own. So the linker refuses an
// engine of another version, or one with MPI for programs without.
#if GSHARD_COMPILED_KERNELS
#include <gshard/base/version.hpp>
#define GSHARD_BUILD_NAME_EXPANDED(major, minor, patch, mpi) \
  needs_gshard_##major##_##minor##_##patch##_compiled_with_GSHARD_HAS_MPI_##mpi
#define GSHARD_BUILD_NAME(major, minor, patch, mpi) GSHARD_BUILD_NAME_EXPANDED(major, minor, patch, mpi)
#define GSHARD_BUILD GSHARD_BUILD_NAME(GSHARD_VERSION_MAJOR, GSHARD_VERSION_MINOR, GSHARD_VERSION_PATCH, GSHARD_HAS_MPI)
extern "C" const char GSHARD_BUILD;
#ifdef GSHARD_COMPILES_ENGINE
const char GSHARD_BUILD = 0;
#endif
namespace gshard { inline namespace v0 { namespace detail {
[[gnu::used]] inline const char* const build_in_use = &GSHARD_BUILD;
}}}  // namespace gshard::v0::detail
#undef GSHARD_BUILD
#undef GSHARD_BUILD_NAME
#undef GSHARD_BUILD_NAME_EXPANDED
#endif
