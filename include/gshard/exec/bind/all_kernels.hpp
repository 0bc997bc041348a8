// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The table of all kernels of the library, for programs whose plan is made at run time.

#include <gshard/exec/bind/kernels.hpp>

#include <array>

// Without GSHARD_COMPILED_KERNELS, a translation unit that uses this table compiles all kernels.
namespace gshard { inline namespace v0 {

#if GSHARD_COMPILED_KERNELS

inline constexpr const kernel_table& all_kernels = compiled_kernels;

#else

namespace detail {
struct every_kernel {
  static constexpr auto has = [] {
    std::array<bool, kernel_table::size> all{};
    all.fill(true);
    return all;
  }();
};
inline constexpr kernel_table every_kernel_table = make_kernel_table<every_kernel>();
}  // namespace detail

inline constexpr const kernel_table& all_kernels = detail::every_kernel_table;

#endif

}}  // namespace gshard::v0
