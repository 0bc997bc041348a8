// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Compiles kernels and makes the table of them.

#include <gshard/exec/bind/elementwise.hpp>
#include <gshard/exec/bind/gemm.hpp>
#include <gshard/exec/bind/kernel_table.hpp>
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

namespace gshard { inline namespace v0 { namespace detail {

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

/// All kernels of the library.
struct every_kernel {
  static constexpr auto has = [] {
    std::array<bool, kernel_table::size> all{};
    all.fill(true);
    return all;
  }();
};

}}}  // namespace gshard::v0::detail
