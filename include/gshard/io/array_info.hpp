// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Element type and shape of a tensor in a file.

#include <gshard/core/ir/graph.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 {

/// The element types of gshard's files, by their names in safetensors files.
enum class array_type : std::uint8_t { f32, f64, i32, i64, f16, bf16, boolean, u8, count_ };

struct array_type_traits {
  array_type type;
  std::string_view name;
  int size;                     ///< Bytes.
  dtype element = dtype::count_;  ///< The element type of tensors saved with this type.
};
inline constexpr array_type_traits array_types[]{
    {array_type::f32, "F32", 4, dtype::f32},    {array_type::f64, "F64", 8, dtype::f64}, {array_type::i32, "I32", 4, dtype::i32},
    {array_type::i64, "I64", 8, dtype::i64},    {array_type::f16, "F16", 2, dtype::f16}, {array_type::bf16, "BF16", 2, dtype::bf16},
    {array_type::boolean, "BOOL", 1, dtype::boolean}, {array_type::u8, "U8", 1},
};

constexpr std::string_view name_of(array_type t) { return array_types[std::size_t(t)].name; }
constexpr std::int64_t size_of(array_type t) { return array_types[std::size_t(t)].size; }
/// The type of a tensor's elements in a file; array_type::count_ if files have no such type: complex numbers.
constexpr array_type array_type_of(dtype t) {
  for (const array_type_traits& row : array_types)
    if (row.element == t) return row.type;
  return array_type::count_;
}

/// A tensor in a file: row-major and little-endian, of at most `max_rank` dims.
struct array_info {
  std::string name;
  array_type type = array_type::f32;
  std::vector<std::int64_t> shape;

  /// Bytes of the data. The shape must have been checked.
  std::int64_t bytes() const {
    std::int64_t n = size_of(type);
    for (const std::int64_t extent : shape) n *= extent;
    return n;
  }
  bool operator==(const array_info&) const = default;
};

/// "F32[2,3]"
inline std::string text_of(const array_info& a) {
  std::string text(name_of(a.type));
  for (std::size_t d = 0; d < a.shape.size(); ++d) text += (d == 0 ? '[' : ',') + std::to_string(a.shape[d]);
  return text + (a.shape.empty() ? "[]" : "]");
}

}}  // namespace gshard::v0
