// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The kernels of one program: compiled with it, or taken from the compiled library.

#include <gshard/core/base/compiled.hpp>
#include <gshard/exec/bind/kernel_table.hpp>

#if GSHARD_HEADER_ONLY
#include <gshard/exec/program/make_kernel_table.hpp>
#endif

#include <array>

namespace gshard { inline namespace v0 {

#if GSHARD_HEADER_ONLY

namespace detail {

template <class Program>
struct kernels_in {
  struct found {
    std::array<used_kernels, Program::plan.steps.size()> kernels{};
    std::size_t count = 0;
  };
  static constexpr found all = [] {
    found f;
    for (const node& step : Program::plan.steps) {
      const dtype type = kernel_type(step.kind, element_type(Program::plan, step));
      std::size_t i = 0;
      while (i < f.count && f.kernels[i].kind != step.kind) ++i;
      if (i == f.count) f.kernels[f.count++].kind = step.kind;
      f.kernels[i].types |= only(type);
    }
    return f;
  }();
  static constexpr auto used = [] {
    std::array<used_kernels, all.count> exact{};
    for (std::size_t i = 0; i < exact.size(); ++i) exact[i] = all.kernels[i];
    return exact;
  }();
};

template <class Program>
struct own_kernels : requires_kernel<*first_left_out<kernels_in<Program>>> {
  static constexpr kernel_table table = make_kernel_table<kernels_in<Program>>();
};

}  // namespace detail

/// The kernels that a program uses.
template <class Program>
inline constexpr const kernel_table& kernels_of = detail::own_kernels<Program>::table;

#else

/// All kernels, defined in cmake/kernels.cpp.
extern const kernel_table compiled_kernels;

template <class Program>
inline constexpr const kernel_table& kernels_of = compiled_kernels;

#endif

}}  // namespace gshard::v0
