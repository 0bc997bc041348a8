// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Whether programs compile the engine and their kernels, or take them from an object that is compiled once (the target gshard::kernels).

// 0: header-only. 1: the engine and all kernels are in cmake/kernels.cpp, which defines GSHARD_COMPILES_KERNELS.
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
