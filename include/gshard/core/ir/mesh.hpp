// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Device meshes: named axes whose extents are static or bound at run time.

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/base/name.hpp>

#include <array>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

/// An extent that is bound when the program starts.
inline constexpr int dynamic = -1;

inline constexpr int max_axes = 8;
/// The most devices of a mesh.
inline constexpr int max_devices = INT32_MAX;

/// The shape of a mesh of devices: named axes in row-major order, with their extents if known at compile time.
struct mesh_shape {
  std::array<axis_name, max_axes> names{};
  std::array<int, max_axes> extents{};
  int count = 0;

  constexpr void push_back(std::string_view name, int extent) {
    names[std::size_t(count)] = axis_name(name);
    extents[std::size_t(count)] = extent;
    ++count;
  }
  /// Index of the axis called `name`, or -1.
  constexpr int find(std::string_view name) const {
    for (int a = 0; a < count; ++a)
      if (names[std::size_t(a)].view() == name) return a;
    return -1;
  }
  constexpr int rank() const { return count; }
  constexpr int static_extent(int a) const { return extents[std::size_t(a)]; }
  /// The number of devices; 0 if the extent of an axis is dynamic. More than `max_devices` if there are too many.
  constexpr std::int64_t static_devices() const {
    std::int64_t n = 1;
    for (int a = 0; a < count; ++a)
      if (static_extent(a) == dynamic) return 0;
      else if (n <= max_devices) n *= static_extent(a);
    return n;
  }
  constexpr std::string_view name(int a) const { return names[std::size_t(a)].view(); }
};

namespace detail {
/// The members of an axis. A base, because clang uses no members of a class whose assertion fails.
template <fixed_string Name, int Extent>
struct axis_members {
  static constexpr std::string_view name = Name.view();
  static constexpr int extent = Extent;
};
}  // namespace detail

/// One axis of a mesh. `axis<"expert">` gets its extent when the program starts; `axis<"expert", 8>` has a static extent.
template <fixed_string Name, int Extent = dynamic>
struct axis : detail::axis_members<Name, Extent> {
  static_assert(Name.view().size() > 0, "gshard: a mesh axis needs a name");
  static_assert(axis_name::fits(Name.view()), "gshard: the name of a mesh axis has at most 23 characters");
  static_assert(Name.view().find_first_of(",@?+ ") == std::string_view::npos,
                "gshard: the name of a mesh axis has no comma, '@', '?', '+' or space, which separate axes in texts such as \"B@data,M\"");
  static_assert(Extent == dynamic || Extent > 0, "gshard: the extent of a mesh axis is positive, or left out");
};

namespace detail {
template <class... Axes>
constexpr mesh_shape shape_of_axes() {
  mesh_shape shape;
  (shape.push_back(Axes::name, Axes::extent), ...);
  return shape;
}
constexpr bool names_are_unique(const mesh_shape& shape) {
  for (int a = 0; a < shape.count; ++a)
    if (shape.find(shape.name(a)) != a) return false;
  return true;
}
}  // namespace detail

/// A mesh of devices as a type: `mesh<axis<"data">, axis<"expert", 8>>`. Device ids are row-major over the axes.
template <class... Axes>
struct mesh {
  static_assert((... && (sizeof(Axes) > 0)));  // their assertions fail here, not in the initializer of the shape
  static_assert(sizeof...(Axes) <= max_axes, "gshard: a mesh has at most 8 axes");
  static constexpr mesh_shape shape = detail::shape_of_axes<Axes...>();
  static_assert(detail::names_are_unique(shape), "gshard: two axes of a mesh have the same name");
  static_assert(shape.static_devices() <= max_devices, "gshard: a mesh has at most 2147483647 devices");
};

namespace detail {
template <class T>
concept mesh_type = requires { static_cast<const mesh_shape&>(T::shape); };
template <class T>
concept has_static_extents = mesh_type<T> && requires { requires T::shape.static_devices() > 0; };
}  // namespace detail

}}  // namespace gshard::v0
