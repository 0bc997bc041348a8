// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Macros that decide where backends, runtime and kernels are compiled: in each program, or once in the target gshard::kernels. The runtime
// binds plans and runs them: exec/program/.

// 0: header-only. 1: cmake/runtime.cpp has backends and runtime, and defines GSHARD_COMPILES_RUNTIME. cmake/kernels.cpp has the kernels.
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

// 1 where a header defines its GSHARD_INLINE functions: everywhere if header-only, otherwise in cmake/runtime.cpp.
#if GSHARD_HEADER_ONLY || defined(GSHARD_COMPILES_RUNTIME)
#define GSHARD_HAS_BODIES 1
#else
#define GSHARD_HAS_BODIES 0
#endif

// 1 if gshard.hpp and the compiled objects have the MPI backend. By default, it is 1 if <mpi.h> is found.
#ifndef GSHARD_HAS_MPI
#if __has_include(<mpi.h>)
#define GSHARD_HAS_MPI 1
#else
#define GSHARD_HAS_MPI 0
#endif
#endif

// GSHARD_NEEDS(symbol): every source refers to a symbol that is named after its build, and cmake/runtime.cpp defines the symbol of its own
// build. Therefore the linker refuses a runtime of another version, or one without MPI for programs with MPI.
#if GSHARD_HEADER_ONLY
#define GSHARD_NEEDS(symbol) static_assert(true)
#else
#include <gshard/core/base/version.hpp>
#ifdef GSHARD_COMPILES_RUNTIME
#define GSHARD_NEEDED_DEFINITION(symbol) const char symbol = 0;
#else
#define GSHARD_NEEDED_DEFINITION(symbol)
#endif
#if defined(__has_attribute) && __has_attribute(retain) && defined(__ELF__)
#define GSHARD_KEPT_BY_LINKER [[gnu::used, gnu::retain]]  // also with --gc-sections
#else
#define GSHARD_KEPT_BY_LINKER [[gnu::used]]
#endif
#define GSHARD_NEEDS(symbol)                                                          \
  extern "C" {                                                                        \
  extern const char symbol;                                                           \
  GSHARD_NEEDED_DEFINITION(symbol)                                                    \
  }                                                                                   \
  namespace gshard { inline namespace v0 { namespace detail {                         \
  GSHARD_KEPT_BY_LINKER inline const char* const symbol_of_##symbol = &symbol;        \
  }}}                                                                                 \
  static_assert(true)
#define GSHARD_NEEDS_BUILD(major, minor, patch, mpi) \
  GSHARD_NEEDS(needs_gshard_##major##_##minor##_##patch##_compiled_with_GSHARD_HAS_MPI_##mpi)
#define GSHARD_NEEDS_BUILD_EXPANDED(major, minor, patch, mpi) GSHARD_NEEDS_BUILD(major, minor, patch, mpi)
GSHARD_NEEDS_BUILD_EXPANDED(GSHARD_VERSION_MAJOR, GSHARD_VERSION_MINOR, GSHARD_VERSION_PATCH, GSHARD_HAS_MPI);
#undef GSHARD_NEEDS_BUILD
#undef GSHARD_NEEDS_BUILD_EXPANDED
#endif
