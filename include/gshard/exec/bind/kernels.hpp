// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The kernels of one program: compiled with it, or taken from the compiled library.

#include <gshard/base/compiled.hpp>
#include <gshard/exec/bind/kernel_table.hpp>

#if GSHARD_HEADER_ONLY
#include <gshard/exec/bind/make_kernel_table.hpp>
#endif

#include <array>

namespace gshard { inline namespace v0 {

#if GSHARD_HEADER_ONLY

namespace detail {

template <class Program>
struct kernels_in {
  static constexpr auto has = [] {
    std::array<bool, kernel_table::size> used{};
    for (const node& step : Program::plan.steps) used[kernel_table::index(step.kind, element_type(Program::plan, step))] = true;
    return used;
  }();
};

template <class Program>
inline constexpr kernel_table own_kernels = make_kernel_table<kernels_in<Program>>();

}  // namespace detail

/// The kernels that a program uses.
template <class Program>
inline constexpr const kernel_table& kernels_of = detail::own_kernels<Program>;

#else

/// All kernels, defined in cmake/kernels.cpp.
extern const kernel_table compiled_kernels;

template <class Program>
inline constexpr const kernel_table& kernels_of = compiled_kernels;

#endif

}}  // namespace gshard::v0
