// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/exec/kernels.hpp>

#include <array>

namespace gshard { inline namespace v0 {

namespace detail {
struct every_kernel {
  static constexpr auto has = [] {
    std::array<bool, kernel_table::size> all{};
    all.fill(true);
    return all;
  }();
};
}  // namespace detail

/// The kernels of all operations, for plans that are made when the program runs. Whoever includes this compiles them all.
inline constexpr kernel_table all_kernels = kernel_table::of<detail::every_kernel>();

}}  // namespace gshard::v0
