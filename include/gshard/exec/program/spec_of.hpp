// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The partition spec of a value of a plan, as a type.

#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/ir/spec.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 { namespace detail {

template <class Mesh, int Axis>
inline constexpr auto axis_word = word<Mesh::shape.name(Axis).size()>(Mesh::shape.name(Axis));

/// The axes that shard dim `d`; for d == rank, the axes of partial sums.
constexpr short_list axes_of_entry(const sharding& s, int d) {
  if (d < s.rank) return s[d];
  short_list l;
  for (int a = 0; a < max_axes; ++a)
    if (s.is_partial(a)) l.push_back(a);
  return l;
}

// A layout is passed as a type with a member `value`: g++ 12 crashes on class-type template arguments of this depth.
template <class Mesh, class Layout, int D, template <fixed_string...> class Entry, std::size_t... I>
constexpr auto entry_for(std::index_sequence<I...>) {
  return Entry<axis_word<Mesh, axes_of_entry(Layout::value, D)[int(I)]>...>{};
}
template <class Layout, std::size_t... I>
constexpr auto devices_entry(std::index_sequence<I...>) {
  return on_devices<Layout::order[I]...>{};
}
template <class Mesh, class Layout, int D>
constexpr auto entry() {
  constexpr auto count = std::size_t(axes_of_entry(Layout::value, D).size());
  if constexpr (D == int(Layout::value.rank) && Layout::value.order != 0)
    return devices_entry<Layout>(std::make_index_sequence<Layout::order.size()>{});
  else if constexpr (D == int(Layout::value.rank)) return entry_for<Mesh, Layout, D, pending>(std::make_index_sequence<count>{});
  else if constexpr (count == 0) return replicated{};
  else return entry_for<Mesh, Layout, D, shard>(std::make_index_sequence<count>{});
}

template <class Mesh, class Layout, class Entries>
struct make_spec;
template <class Mesh, class Layout, std::size_t... D>
struct make_spec<Mesh, Layout, std::index_sequence<D...>> {
  using type = spec<decltype(entry<Mesh, Layout, int(D)>())...>;
};

/// The partition spec of the sharding `Layout::value` on a mesh. `Layout::order`: its device order, if it has one.
template <class Mesh, class Layout>
using spec_of =
    typename make_spec<Mesh, Layout,
                       std::make_index_sequence<std::size_t(Layout::value.rank + (Layout::value.partial || Layout::value.order))>>::type;

/// The sharding of a value of a program.
template <class Program, std::int32_t Value>
struct layout_in {
  static constexpr sharding value = Program::plan.at(Value).layout;
  static constexpr list_view<int> order = Program::plan.order_of(value);
};
/// The shardings of a program's inputs and outputs.
template <class Program, std::size_t I>
using input_layout = layout_in<Program, Program::plan.inputs[I].value>;
template <class Program, std::size_t I>
using output_layout = layout_in<Program, Program::plan.outputs[I].value>;

}}}  // namespace gshard::v0::detail
