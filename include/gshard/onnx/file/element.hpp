// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The element types of ONNX tensors, and the element types that gshard computes them in.

#include <gshard/core/ir/dtype.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace gshard { inline namespace v0 { namespace onnx {

/// The element types of ONNX, by their numbers in its files.
enum class element : std::uint8_t {
  undefined,
  f32,
  u8,
  i8,
  u16,
  i16,
  i32,
  i64,
  string,
  boolean,
  f16,
  f64,
  u32,
  u64,
  c64,
  c128,
  bf16,
  count_
};

struct element_traits {
  element type;
  std::string_view name;  ///< In ONNX's texts.
  int size = 0;           ///< Bytes in a file; 0: gshard does not read such elements.
  /// The type of tensors in a program. Integers that gshard lacks are computed in a larger type, and wrapped.
  dtype carrier = dtype::count_;
  int wraps_at = 0;        ///< Bits of an integer that is narrower than its carrier.
  bool is_signed = false;  ///< Of an integer that is narrower than its carrier.
};

inline constexpr element_traits element_table[]{
    {element::undefined, "undefined"},
    {element::f32, "float", 4, dtype::f32},
    {element::u8, "uint8", 1, dtype::i32, 8},
    {element::i8, "int8", 1, dtype::i32, 8, true},
    {element::u16, "uint16", 2, dtype::i32, 16},
    {element::i16, "int16", 2, dtype::i32, 16, true},
    {element::i32, "int32", 4, dtype::i32},
    {element::i64, "int64", 8, dtype::i64},
    {element::string, "string"},
    {element::boolean, "bool", 1, dtype::boolean},
    {element::f16, "float16", 2, dtype::f16},
    {element::f64, "double", 8, dtype::f64},
    {element::u32, "uint32", 4, dtype::i64, 32},
    {element::u64, "uint64", 8, dtype::i64},  // wraps as int64 does; no comparisons, quotients or other functions
    {element::c64, "complex64", 8, dtype::c64},
    {element::c128, "complex128", 16, dtype::c128},
    {element::bf16, "bfloat16", 2, dtype::bf16},
};
static_assert([] {
  for (int i = 0; i < int(element::count_); ++i)
    if (element_table[i].type != element(i)) return false;
  return sizeof element_table == std::size_t(element::count_) * sizeof(element_traits);
}());

constexpr const element_traits& traits(element e) {
  return element_table[std::size_t(e)];
}
inline std::string name(element e) {
  return std::string(traits(e).name);
}
/// The element type with this number in a file; undefined if gshard knows none.
constexpr element element_of(std::int64_t number) {
  return number > 0 && number < std::int64_t(element::count_) ? element(number) : element::undefined;
}
/// The element type of tensors of a program in files.
constexpr element element_of(dtype type) {
  for (const element_traits& t : element_table)
    if (t.carrier == type && size_of(type) == t.size && t.wraps_at == 0 && t.type != element::u64) return t.type;
  return element::undefined;
}

constexpr bool is_half(element e) {
  return e == element::f16 || e == element::bf16;
}
constexpr bool is_float(element e) {
  return is_half(e) || e == element::f32 || e == element::f64;
}
constexpr bool is_complex(element e) {
  return e == element::c64 || e == element::c128;
}
constexpr bool is_integer(element e) {
  return traits(e).carrier == dtype::i32 || traits(e).carrier == dtype::i64;
}

}}}  // namespace gshard::v0::onnx
