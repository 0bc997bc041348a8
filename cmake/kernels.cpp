// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Backends, engine and all kernels, compiled once for programs with GSHARD_COMPILED_KERNELS=1. @see gshard/base/compiled.hpp
#undef GSHARD_COMPILED_KERNELS
#define GSHARD_COMPILED_KERNELS 1
#define GSHARD_COMPILES_KERNELS
#include <gshard/gshard.hpp>
#include <gshard/report.hpp>
#include <gshard/exec/bind/make_kernel_table.hpp>
#include <gshard/exec/collective/replicate.hpp>
#include <gshard/exec/engine.hpp>
#include <gshard/testing/check_shardings.hpp>

namespace gshard { inline namespace v0 {

constinit const kernel_table compiled_kernels = detail::make_kernel_table<detail::every_kernel>();

}}  // namespace gshard::v0
