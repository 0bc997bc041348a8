// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The devices that differ along some axes of a mesh: the group of a collective.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/exec/process/error.hpp>

#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace gshard { inline namespace v0 {

namespace detail {
/// "2x3", "2x?" if the second extent is dynamic.
std::string mesh_text(std::span<const int> extents);
/// "{0,2}"
std::string axes_text(std::uint32_t axes);
}  // namespace detail

/// The number of devices of a mesh: the product of its extents (1 for a mesh without axes).
/// Throws `gshard::error` if there are more than `max_axes` extents, if one is below 1, or if the product
/// overflows.
constexpr int device_count(std::span<const int> extents) {
  if (extents.size() > std::size_t(max_axes))
    throw error("a mesh has at most " + std::to_string(max_axes) + " axes, not " +
                std::to_string(extents.size()));
  std::int64_t count = 1;
  for (const int extent : extents) {
    if (extent < 1) throw error("mesh " + detail::mesh_text(extents) + ": every extent must be at least 1");
    count *= extent;
    if (count > INT_MAX) throw error("mesh " + detail::mesh_text(extents) + " has too many devices");
  }
  return int(count);
}

/// Row-major coordinates of a device; entries beyond the rank of the mesh are 0.
constexpr std::array<int, max_axes> coordinates_of(std::span<const int> extents, int device) {
  std::array<int, max_axes> at{};
  for (std::size_t a = extents.size(); a-- > 0; device /= extents[a]) at[a] = device % extents[a];
  return at;
}

/// The group of one device: the devices that differ from it only along some mesh axes, in row-major order of their coordinates.
class device_group {
 public:
  /// The group of `device` along `axes` (bit a is mesh axis a; bits beyond the mesh are ignored).
  constexpr device_group(std::span<const int> extents, std::uint32_t axes, int device) : origin_(device) {
    int stride = 1;
    for (std::size_t a = extents.size(); a-- > 0; stride *= extents[a]) {
      if ((axes >> a & 1u) == 0) continue;
      const int coordinate = device / stride % extents[a];
      origin_ -= coordinate * stride;
      member_ += coordinate * size_;
      size_ *= extents[a];
      extent_[rank_] = extents[a];
      stride_[rank_++] = stride;
    }
  }

  constexpr int size() const { return size_; }
  /// The member number of this device.
  constexpr int member() const { return member_; }
  /// The device with a member number.
  constexpr int device(int member) const {
    int id = origin_;
    for (std::size_t k = 0; k < rank_; member /= extent_[k++]) id += member % extent_[k] * stride_[k];
    return id;
  }

 private:
  int origin_;  // the device of member 0
  int member_ = 0;
  int size_ = 1;
  std::size_t rank_ = 0;
  std::array<int, max_axes> extent_{};  // of the axes of the group, minor to major
  std::array<int, max_axes> stride_{};
};

#if GSHARD_HAS_BODIES

namespace detail {

GSHARD_INLINE std::string mesh_text(std::span<const int> extents) {
  std::string text;
  for (const int extent : extents)
    text.append(text.empty() ? "" : "x").append(extent == dynamic ? "?" : std::to_string(extent));
  return text;
}

GSHARD_INLINE std::string axes_text(std::uint32_t axes) {
  std::string text;
  for (int a = 0; a < 32; ++a)
    if ((axes >> a & 1u) != 0) text.append(text.empty() ? "{" : ",").append(std::to_string(a));
  return text.empty() ? "{}" : text + "}";
}

}  // namespace detail

#endif

}}  // namespace gshard::v0
