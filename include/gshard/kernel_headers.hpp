// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The headers of the kernels of all operations, and the list by which all of them are compiled.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/all_operations.hpp>
#include <gshard/exec/bind/kernel_table.hpp>

#define GSHARD_KERNELS
#define GSHARD_KERNELS_OF_LAYERS
#include <gshard/operations.def>
#undef GSHARD_KERNELS_OF_LAYERS
#undef GSHARD_KERNELS

#include <array>
#include <cstddef>
#include <iterator>

namespace gshard { inline namespace v0 { namespace detail {

/// All kernels of the library.
struct every_kernel {
  static constexpr auto used = [] {
    std::array<used_kernels, std::size(all_operations)> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = {all_operations[i], all_elements};
    return all;
  }();
};

}}}  // namespace gshard::v0::detail
