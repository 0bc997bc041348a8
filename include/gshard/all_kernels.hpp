// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The table of all kernels of the library, for programs whose plan is made at run time.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/exec/program/kernels.hpp>

#if GSHARD_HEADER_ONLY
#include <gshard/kernel_headers.hpp>
#endif

// In a header-only build, a translation unit that uses this table compiles all kernels.
namespace gshard { inline namespace v0 {

#if GSHARD_HEADER_ONLY

namespace detail {
inline constexpr kernel_table every_kernel_table = make_kernel_table<every_kernel>();
}  // namespace detail

inline constexpr const kernel_table& all_kernels = detail::every_kernel_table;

#else

inline constexpr const kernel_table& all_kernels = compiled_kernels;

#endif

}}  // namespace gshard::v0
