// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The kernels of one program: compiled with it, or taken from the compiled library.

#include <gshard/exec/bind/kernel_table.hpp>

// Header-only, a program compiles the kernels of its own plan. With GSHARD_COMPILED_KERNELS=1, all kernels come from cmake/kernels.cpp,
// which is compiled once.
#ifndef GSHARD_COMPILED_KERNELS
#define GSHARD_COMPILED_KERNELS 0
#endif

#if GSHARD_COMPILED_KERNELS

namespace gshard { inline namespace v0 {

/// All kernels, defined in cmake/kernels.cpp.
extern const kernel_table compiled_kernels;

template <class Program>
inline constexpr const kernel_table& kernels_of = compiled_kernels;

}}  // namespace gshard::v0

#else

#include <gshard/exec/bind/elementwise.hpp>
#include <gshard/exec/bind/gemm.hpp>
#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/bind/moe.hpp>
#include <gshard/exec/bind/move.hpp>
#include <gshard/exec/bind/rows.hpp>
#include <gshard/exec/bind/user_code.hpp>
#include <gshard/exec/bind/window.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 {

namespace detail {

/// Binds a step by the overload of `bind` for its operation.
template <op Kind, class T>
action bind_step(const node& step, const bound_plan& all, std::size_t device) {
  const local_step<T> on_device(step, all, device);
  if constexpr (requires { bind(operation<Kind>{}, on_device); }) return bind(operation<Kind>{}, on_device);
  else throw error("executor: no kernel of this program runs a step of kind " + std::string(name(step.kind)));
}

/// The table of the kernels k for which `Selection::has[k]`. The others are not compiled: binding them throws.
template <class Selection>
constexpr kernel_table make_kernel_table() {
  return []<std::size_t... K>(std::index_sequence<K...>) {
    return kernel_table{{&bind_step<Selection::has[K] ? op(K / 2) : op::count_,
                                    std::conditional_t<(Selection::has[K] && K % 2 == 1), double, float>>...}};
  }(std::make_index_sequence<kernel_table::size>{});
}

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

}}  // namespace gshard::v0

#endif
