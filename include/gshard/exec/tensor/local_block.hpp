// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A block of a global array in an application's memory.

#include <gshard/core/base/reason.hpp>
#include <gshard/exec/kernel/view.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/exec/tensor/mdspan.hpp>
#include <gshard/exec/tensor/whole_array.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// A block of a global array in an application's memory: its address, and the position of its elements in the array. The application keeps
/// the memory.
///   local_block<double>{data, {row, column}, {rows, columns}}            is row-major and contiguous.
///   local_block<double>{data, {row, column}, {rows, columns}, {1, ld}}   has strides, here column-major as in LAPACK.
///   local_block(matrix, {row, column})                                   is an Eigen matrix or map, an xtensor array or an mdspan.
/// Offset, extent and stride have a number per dim of the global array and count elements. A block may be empty.
/// Compile time: that the array has memory, and elements of T.
/// Throws `gshard::error` if the array has another number of dims than the offset.
/// @see from_local_blocks, to_local_blocks, scalapack_blocks
template <class T>
struct local_block {
  T* data = nullptr;
  std::vector<std::int64_t> offset;  ///< The global index of the block's first element.
  std::vector<std::int64_t> extent;
  std::vector<std::int64_t> stride;  ///< Empty: row-major and contiguous.
  std::size_t device = 0;            ///< The device of this process that has the block, as a position in cluster.devices().

  local_block() = default;
  local_block(T* first, std::vector<std::int64_t> at, std::vector<std::int64_t> extents, std::vector<std::int64_t> strides = {},
              std::size_t on_device = 0)
      : data(first), offset(std::move(at)), extent(std::move(extents)), stride(std::move(strides)), device(on_device) {}

  template <class Array>
    requires detail::foreign_array<std::remove_const_t<Array>>
  local_block(Array& array, std::vector<std::int64_t> at, std::size_t on_device = 0) : offset(std::move(at)), device(on_device) {
    using given = typename detail::elements_in<Array>::type;
    static_assert(detail::has_memory<Array>, "gshard: a local block of an expression without memory; compute it first");
    static_assert(holds<!detail::has_memory<Array> || std::is_same_v<std::remove_const_t<given>, std::remove_const_t<T>>, expected_type<T>,
                        actual_type<given>>,
                  "gshard: a local block has another element type than its array");
    static_assert(std::is_const_v<T> || !std::is_const_v<given>, "gshard: a local block of const elements is a local_block<const T>");
    if constexpr (std::is_convertible_v<given*, T*>) read(array);
  }
  /// Refused: an array whose memory order is not known.
  template <class Array>
    requires(std::is_class_v<Array> && !detail::foreign_array<std::remove_const_t<Array>>)
  local_block(Array&, std::vector<std::int64_t>, std::size_t = 0) {
    static_assert(holds<detail::foreign_array<std::remove_const_t<Array>>, actual_type<Array>>,
                  "gshard: a local block is an address with extents, an Eigen matrix, an xtensor array or an mdspan (include "
                  "<gshard/exec/tensor/eigen.hpp> or <gshard/exec/tensor/xtensor.hpp>)");
  }

 private:
  template <class Array>
  void read(Array& array) {
    detail::array_reader<std::remove_const_t<Array>>::read(array, [&](const auto& whole) {
      const detail::array_layout& given = whole.layout;
      const bool is_vector = given.is_matrix && offset.size() == 1 && (given.extent[0] == 1 || given.extent[1] == 1);
      if (!is_vector && given.rank != int(offset.size()))
        throw error("local_block: an array of " + std::to_string(given.rank) + " dims, and an offset of " + std::to_string(offset.size()));
      data = const_cast<T*>(whole.data);  // T is const if the array's elements are
      for (std::size_t d = 0; d < offset.size(); ++d) {
        extent.push_back(is_vector ? given.size : given.extent[d]);
        stride.push_back(given.stride[is_vector && given.extent[0] == 1 ? 1 : d]);
      }
    });
  }
};

template <class Array>
local_block(Array&, std::vector<std::int64_t>, std::size_t = 0) -> local_block<typename detail::elements_in<Array>::type>;

}}  // namespace gshard::v0
