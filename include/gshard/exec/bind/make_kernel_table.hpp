// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Compiles kernels and makes the table of kernels.

#include <gshard/base/build_options.hpp>
#include <gshard/exec/bind/elementwise.hpp>
#include <gshard/exec/bind/finite.hpp>
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

/// The C++ type of the elements of a kernel. For data movement: words of the same size that may alias any element type and need no more
/// alignment.
template <op Kind, dtype Type>
using kernel_element =
    std::conditional_t<traits(Kind).by_size, kernel::detail::word_of_element<std::size_t(size_of(Type))>, element_of<Type>>;

[[noreturn]] inline action no_kernel(const node& step, const bound_plan&, std::size_t) {
  throw error("executor: no kernel of this program runs a step of kind " + std::string(name(step.kind)));
}

/// Binds a step by the overload of `bind` for its operation.
template <op Kind, dtype Type>
action bind_step(const node& step, const bound_plan& all, std::size_t device) {
  const local_step<kernel_element<Kind, Type>> on_device(step, all, device);
  if constexpr (requires { bind(operation<Kind>{}, on_device); }) return bind(operation<Kind>{}, on_device);
  else return no_kernel(step, all, device);
}

/// The binder of an operation for an element type, if it is selected.
template <bool Selected, op Kind, dtype Type>
inline constexpr kernel_table::binder chosen_binder = [] {
  if constexpr (Selected && supports(Kind, Type) && kernel_type(Kind, Type) == Type) return &bind_step<Kind, Type>;
  else return &no_kernel;
}();

/// The table of the kernels k for which `Selection::has[k]`. The others are not compiled: binding them throws.
template <class Selection>
constexpr kernel_table make_kernel_table() {
  return []<std::size_t... K>(std::index_sequence<K...>) {
    constexpr std::size_t types = std::size_t(element_types);
    return kernel_table{{chosen_binder<Selection::has[K], op(K / types), dtype(K % types)>...},
                        {},
                        GSHARD_MATRIX_LIBRARIES GSHARD_FLOAT_OPTIONS};
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
