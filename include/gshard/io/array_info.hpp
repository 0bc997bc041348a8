// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Element type and shape of a tensor in a file.

#include <gshard/ir/graph.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 {

/// The element types of gshard's files.
enum class array_type : std::uint8_t { f32, f64, i32, u8 };

constexpr std::string_view name_of(array_type t) {
  constexpr std::array<std::string_view, 4> names{"F32", "F64", "I32", "U8"};
  return names[std::size_t(t)];
}
constexpr std::int64_t size_of(array_type t) {
  return t == array_type::u8 ? 1 : t == array_type::f64 ? 8 : 4;
}
constexpr array_type array_type_of(dtype t) {
  return t == dtype::f64 ? array_type::f64 : t == dtype::i32 ? array_type::i32 : array_type::f32;
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
