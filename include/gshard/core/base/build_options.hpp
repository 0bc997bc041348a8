// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The compile options of a source that change the bits of results, as string literals. Macros, because sources of one program may differ.

#ifndef GSHARD_HAS_BLAS
#define GSHARD_HAS_BLAS 0
#endif
#ifndef GSHARD_HAS_ONEDNN
#define GSHARD_HAS_ONEDNN 0
#endif

// GSHARD_MATRIX_LIBRARIES: the libraries of matrix products.
#if GSHARD_HAS_ONEDNN && GSHARD_HAS_BLAS
#define GSHARD_MATRIX_LIBRARIES "oneDNN and BLAS"
#elif GSHARD_HAS_ONEDNN
#define GSHARD_MATRIX_LIBRARIES "oneDNN and Eigen"
#elif GSHARD_HAS_BLAS
#define GSHARD_MATRIX_LIBRARIES "BLAS"
#else
#define GSHARD_MATRIX_LIBRARIES "Eigen"
#endif

// GSHARD_FLOAT_OPTIONS: instruction sets and flags for floating-point numbers, such as ", AVX, FMA".
#if defined(__AVX512F__)
#define GSHARD_VECTOR_OPTION ", AVX-512"
#elif defined(__AVX__)
#define GSHARD_VECTOR_OPTION ", AVX"
#else
#define GSHARD_VECTOR_OPTION ""
#endif
#if defined(__FMA__)
#define GSHARD_FMA_OPTION ", FMA"
#else
#define GSHARD_FMA_OPTION ""
#endif
#if defined(__FAST_MATH__)
#define GSHARD_FAST_MATH_OPTION ", -ffast-math"
#elif defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__)
#define GSHARD_FAST_MATH_OPTION ", reordered arithmetic"
#else
#define GSHARD_FAST_MATH_OPTION ""
#endif
#define GSHARD_FLOAT_OPTIONS GSHARD_VECTOR_OPTION GSHARD_FMA_OPTION GSHARD_FAST_MATH_OPTION
