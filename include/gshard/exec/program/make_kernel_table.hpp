// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Compiles kernels and makes the table of kernels. A program compiles those of its operations whose headers it includes.

#include <gshard/core/base/build_options.hpp>
#include <gshard/exec/bind/kernel_table.hpp>
#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/core_kernels/einsum_kernel.hpp>
#include <gshard/exec/core_kernels/iota_kernel.hpp>
#include <gshard/exec/core_kernels/map_kernel.hpp>
#include <gshard/exec/core_kernels/shape_kernel.hpp>

#if GSHARD_HEADER_ONLY
#include <gshard/exec/collective/make_collective.hpp>
#include <gshard/exec/collective/step_moves.hpp>
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 { namespace detail {

/// The C++ type of the elements of a kernel. For data movement: words of the same size that may alias any element type and need no more
/// alignment.
template <const operation& Kind, dtype Type>
using kernel_element =
    std::conditional_t<traits(Kind).by_size, kernel::detail::word_of_element<std::size_t(size_of(Type))>, element_of<Type>>;

/// Binds a step by the overload of `bind` for its operation.
template <const operation& Kind, dtype Type>
action bind_step(const node& step, const bound_plan& all, std::size_t device) {
  const local_step<kernel_element<Kind, Type>> on_device(step, all, device);
  return bind(kernel_of<Kind>{}, on_device);
}
/// True if an overload of `bind` takes steps of the operation.
template <const operation& Kind>
inline constexpr bool has_bind = requires(const local_step<float>& step) { bind(kernel_of<Kind>{}, step); };

template <const operation& Kind, dtype Type>
inline constexpr bool is_bound = supports(Kind, Type) && kernel_type(Kind, Type) == Type && has_bind<Kind>;

/// True if a kernel of the operation is declared, or none is needed.
template <const operation& Kind>
inline constexpr bool can_run = has_bind<Kind> || Kind.reshards || Kind.control || Kind.id < 0;
/// The first operation of a selection whose kernel is not declared, or op::none.
template <class Selection>
inline constexpr const operation* first_left_out = []<std::size_t... K>(std::index_sequence<K...>) {
  const operation* first = &op::none;
  ((first->id < 0 && !can_run<*Selection::used[K].kind> ? first = &*Selection::used[K].kind : first), ...);
  return first;
}(std::make_index_sequence<Selection::used.size()>{});

template <const operation& Kind>
struct requires_kernel {
  static_assert(can_run<Kind>,
                "gshard: the kernel of an operation is missing: include its header, such as ops/rows/softmax_kernel.hpp, "
                "or <gshard/kernel_headers.hpp>, which includes all");
};

/// The row of an operation, with the kernels for the element types of a mask.
template <const operation& Kind, element_set Types>
inline constexpr kernel_row kernel_row_of = [] {
  kernel_row row{Kind};
  [&]<std::size_t... T>(std::index_sequence<T...>) {
    const auto add = [&]<dtype Type>() {
      if constexpr ((Types & only(Type)) != 0 && is_bound<Kind, Type>) row.binders[std::size_t(Type)] = &bind_step<Kind, Type>;
    };
    (add.template operator()<dtype(T)>(), ...);
  }(std::make_index_sequence<std::size_t(element_types)>{});
  return row;
}();

/// The rows of the kernels in `Selection::used`, a list of operations and element types. Other kernels are not compiled.
template <class Selection>
inline constexpr auto kernel_rows = []<std::size_t... K>(std::index_sequence<K...>) {
  return std::array<kernel_row, sizeof...(K)>{kernel_row_of<*Selection::used[K].kind, Selection::used[K].types>...};
}(std::make_index_sequence<Selection::used.size()>{});

#if GSHARD_HEADER_ONLY
/// The kinds of moves among the operations of a selection: a bit each. Other collectives are not compiled.
template <class Selection>
inline constexpr std::uint32_t move_kinds_in = [] {
  std::uint32_t kinds = 0;
  for (const used_kernels& k : Selection::used)
    if (traits(k.kind).reshards && traits(k.kind).collective) kinds |= 1u << unsigned(move_kind_of(k.kind));
  return kinds;
}();
#endif

template <class Selection>
constexpr kernel_table make_kernel_table() {
  kernel_table table{{kernel_rows<Selection>.data(), kernel_rows<Selection>.size()}, {}, GSHARD_MATRIX_LIBRARIES GSHARD_FLOAT_OPTIONS};
#if GSHARD_HEADER_ONLY
  table.collectives = &collectives_for<move_kinds_in<Selection>>;
#endif
  return table;
}

}}}  // namespace gshard::v0::detail
