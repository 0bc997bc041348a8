// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Views of std::mdspan and of Kokkos as inputs. Neither is included: any view with their functions is accepted.

#include <gshard/exec/tensor/whole_array.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace gshard { inline namespace v0 { namespace detail {

/// True if elements are plain memory. False for an accessor that computes them, such as that of std::linalg::scaled.
template <class View>
concept plain_access = !requires { typename View::reference; } || std::is_same_v<typename View::reference, typename View::element_type&>;

template <class View>
concept multidimensional_span = plain_access<View> && requires(const View& v) {
  typename View::element_type;
  { View::rank() } -> std::convertible_to<std::size_t>;
  { v.extent(0) } -> std::convertible_to<std::size_t>;
  { v.stride(0) } -> std::convertible_to<std::size_t>;
  *v.data_handle();
};

/// Reads views with any strides.
template <multidimensional_span View>
struct array_reader<View> {
  using value_type = std::remove_const_t<typename View::element_type>;
  static constexpr bool owns = false;

  template <class F>
  static void read(const View& v, F f) {
    static_assert(View::rank() <= std::size_t(max_rank), "gshard: an mdspan has more dims than a tensor may have");
    whole_array<value_type> a{v.data_handle(), {std::int64_t(v.size()), int(View::rank())}};
    for (std::size_t d = 0; d < View::rank(); ++d) {
      a.layout.extent[d] = std::int64_t(v.extent(d));
      a.layout.stride[d] = std::int64_t(v.stride(d));
    }
    f(a);
  }
};

template <multidimensional_span View>
struct elements_in<View> {
  using type = typename View::element_type;
};
template <multidimensional_span View>
struct elements_in<const View> : elements_in<View> {};

}}}  // namespace gshard::v0::detail
