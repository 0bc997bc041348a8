// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Verbs on tensors outside of programs, of one row each: reductions, verbs along a dim, lookups, slices and reshapes. A call
// `verb<numbers...>(x, ...)` plans and runs a program of this one verb. Its formula and shapes are those of the verb of programs.
// Communicates: as the verb of programs; a sum stays partial. Compile time: the checks of the verb; that operands are complete.
// Throws: the errors of the verb on all processes; `gshard::error` if operands differ in an extent.
// Numbers are template arguments: sort<1>(x). A result is `sorted_tensors` where that of the verb of programs is `sorted`.
// A transpose is einsum<"AB->BA">.

#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/eager/tensor_verb.hpp>

#define GSHARD_VERBS
#include <gshard/operations.def>
#undef GSHARD_VERBS

#if GSHARD_HEADER_ONLY
#define GSHARD_KERNELS
#include <gshard/operations.def>
#undef GSHARD_KERNELS
#endif

namespace gshard { inline namespace v0 {

#define GSHARD_TENSOR_VERBS
#include <gshard/operations.def>
#undef GSHARD_TENSOR_VERBS

}}  // namespace gshard::v0
