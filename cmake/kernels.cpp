// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// All kernels, compiled once for programs with GSHARD_COMPILED_KERNELS=1. @see gshard/core/base/compiled.hpp
// gshard::compiled also has them for higher levels of the instruction set, each with its own name GSHARD_KERNEL_TABLE. If
// GSHARD_KERNEL_LEVELS is defined, the table of the base level refers to them. The source of the base level defines the highest level.
#undef GSHARD_COMPILED_KERNELS
#define GSHARD_COMPILED_KERNELS 1
#ifndef GSHARD_KERNEL_TABLE
#define GSHARD_KERNEL_TABLE compiled_kernels
#ifndef GSHARD_HIGHEST_LEVEL
#define GSHARD_HIGHEST_LEVEL base
#endif
#endif
#include <Eigen/Core>
#include <gshard/exec/program/kernels.hpp>
#include <gshard/exec/program/make_kernel_table.hpp>
#include <gshard/kernel_headers.hpp>

namespace gshard { inline namespace v0 {

#ifdef GSHARD_HIGHEST_LEVEL
const cpu_level detail::highest_level = cpu_level::GSHARD_HIGHEST_LEVEL;
#endif

extern const kernel_table kernels_x86_64_v3, kernels_x86_64_v4;

constinit const kernel_table GSHARD_KERNEL_TABLE = [] {
  kernel_table made = detail::make_kernel_table<detail::every_kernel>();
#ifdef GSHARD_KERNEL_LEVELS
  made.higher = {&kernels_x86_64_v3, &kernels_x86_64_v4};
#endif
  return made;
}();

}}  // namespace gshard::v0
