// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// All kernels, compiled once for programs with GSHARD_COMPILED_KERNELS=1. @see gshard/exec/bind/kernels.hpp
#undef GSHARD_COMPILED_KERNELS
#define GSHARD_COMPILED_KERNELS 0
#include <gshard/exec/bind/all_kernels.hpp>

namespace gshard { inline namespace v0 {

extern const kernel_table compiled_kernels;
constinit const kernel_table compiled_kernels = all_kernels;

}}  // namespace gshard::v0
