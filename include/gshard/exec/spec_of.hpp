// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/ir/graph.hpp>
#include <gshard/ir/mesh.hpp>
#include <gshard/ir/spec.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

// From a plan's values back to the types that users see.
namespace gshard { inline namespace v0 { namespace detail {

template <dtype Type>
using element_of = std::conditional_t<Type == dtype::f32, float, std::conditional_t<Type == dtype::f64, double, std::int32_t>>;

template <class Mesh, int Axis>
inline constexpr auto axis_word = word<Mesh::shape.name(Axis).size()>(Mesh::shape.name(Axis));

template <class Mesh, short_list Axes, template <fixed_string...> class Entry, std::size_t... I>
constexpr auto entry_for(std::index_sequence<I...>) {
  return Entry<axis_word<Mesh, Axes[int(I)]>...>{};
}
template <class Mesh, short_list Axes>
constexpr auto dim_entry() {
  if constexpr (Axes.empty()) return replicated{};
  else return entry_for<Mesh, Axes, shard>(std::make_index_sequence<std::size_t(Axes.size())>{});
}
constexpr short_list axes_in(std::uint32_t mask) {
  short_list l;
  for (int a = 0; a < max_axes; ++a)
    if ((mask >> a) & 1u) l.push_back(a);
  return l;
}

template <class Mesh, sharding Layout, std::size_t... D>
constexpr auto make_spec(std::index_sequence<D...>) {
  if constexpr (Layout.partial == 0) {
    return spec<decltype(dim_entry<Mesh, Layout.axes[D]>())...>{};
  } else {
    constexpr short_list pending_axes = axes_in(Layout.partial);
    return spec<decltype(dim_entry<Mesh, Layout.axes[D]>())...,
                decltype(entry_for<Mesh, pending_axes, pending>(std::make_index_sequence<std::size_t(pending_axes.size())>{}))>{};
  }
}

/// The partition spec that names this layout.
template <class Mesh, sharding Layout>
using spec_of = decltype(make_spec<Mesh, Layout>(std::make_index_sequence<std::size_t(Layout.rank)>{}));

}}}  // namespace gshard::v0::detail
