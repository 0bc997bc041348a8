// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The element types of tensors, and the table of their properties.

#include <gshard/core/base/compiler.hpp>
#include <gshard/core/base/name.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace Eigen {
struct half;
struct bfloat16;
}  // namespace Eigen

namespace gshard { inline namespace v0 {

/// Eigen's 16-bit floats: IEEE half precision, and the upper half of a float. Tensors store and move them; arithmetic is in float.
using half = Eigen::half;
using bfloat16 = Eigen::bfloat16;

/// Every element type. Each has one line here, one in `dtype_table` and one `element_type_of`.
enum class dtype : std::uint8_t { f32, f64, i32, i64, c64, c128, boolean, f16, bf16, count_ };

/// The arithmetic of an element type. All types can be moved and cast.
enum class arithmetic_of : std::uint8_t {
  real,      ///< float and double: every operation.
  integer,   ///< Sums, element-wise arithmetic and comparisons, reductions.
  complex,   ///< Einsums, element-wise arithmetic, sums; gradients of real losses.
  logical,   ///< Masks: and, or, not; conditions of `select`.
  storage,   ///< None: half precision is cast to float first.
};

/// The properties of an element type.
struct dtype_traits {
  dtype type;
  std::string_view name;      ///< In plans: "f32".
  std::string_view cpp_name;  ///< In error texts: "float".
  int size;                   ///< Bytes.
  arithmetic_of arithmetic;
  dtype part = type;  ///< The type of the real and the imaginary part of a complex type, which are adjacent. Otherwise the type.
};

inline constexpr dtype_traits dtype_table[]{
    {dtype::f32, "f32", "float", 4, arithmetic_of::real},
    {dtype::f64, "f64", "double", 8, arithmetic_of::real},
    {dtype::i32, "i32", "int32", 4, arithmetic_of::integer},
    {dtype::i64, "i64", "int64", 8, arithmetic_of::integer},
    {dtype::c64, "c64", "std::complex<float>", 8, arithmetic_of::complex, dtype::f32},
    {dtype::c128, "c128", "std::complex<double>", 16, arithmetic_of::complex, dtype::f64},
    {dtype::boolean, "bool", "bool", 1, arithmetic_of::logical},
    {dtype::f16, "f16", "gshard::half", 2, arithmetic_of::storage},
    {dtype::bf16, "bf16", "gshard::bfloat16", 2, arithmetic_of::storage},
};
inline constexpr int element_types = int(dtype::count_);
static_assert([] {
  for (int i = 0; i < element_types; ++i)
    if (dtype_table[i].type != dtype(i)) return false;
  return sizeof dtype_table == std::size_t(element_types) * sizeof(dtype_traits);
}());
static_assert(sizeof(bool) == 1);

constexpr const dtype_traits& traits(dtype t) { return dtype_table[std::size_t(t)]; }
constexpr std::string_view name(dtype t) { return traits(t).name; }
/// The C++ type, for error texts.
constexpr std::string_view cpp_name(dtype t) { return traits(t).cpp_name; }
constexpr std::int64_t size_of(dtype t) { return traits(t).size; }
constexpr bool is_real(dtype t) { return traits(t).arithmetic == arithmetic_of::real; }
constexpr bool is_complex(dtype t) { return traits(t).arithmetic == arithmetic_of::complex; }
/// True if gradients are computed in this type.
constexpr bool is_differentiable(dtype t) { return is_real(t) || is_complex(t); }
/// The element type of gradients of tensors of this type: float for half precision. Integers and masks have no gradient.
constexpr dtype gradient_type(dtype t) { return traits(t).arithmetic == arithmetic_of::storage ? dtype::f32 : t; }
/// True if tensors of this type have gradients, perhaps in another type.
constexpr bool has_gradient(dtype t) { return is_differentiable(gradient_type(t)); }
/// True if elements can be added: partial sums may be pending.
constexpr bool has_sums(dtype t) { return is_differentiable(t) || traits(t).arithmetic == arithmetic_of::integer; }
/// True if a number is an element of this type, up to rounding: integers and masks hold no fractions.
constexpr bool can_hold(dtype t, double number) {
  if (traits(t).arithmetic == arithmetic_of::logical) return number == 0 || number == 1;
  if (traits(t).arithmetic != arithmetic_of::integer) return true;
  const double beyond = t == dtype::i32 ? 0x1p31 : 0x1p63;
  return number >= -beyond && number < beyond && double(std::int64_t(number)) == number;
}
/// The complex type with parts of a real type.
constexpr dtype complex_of(dtype real) { return real == dtype::f64 ? dtype::c128 : dtype::c64; }

/// A set of element types, a bit each.
using element_set = std::uint16_t;
constexpr element_set only(arithmetic_of what) {
  element_set set = 0;
  for (const dtype_traits& t : dtype_table)
    if (t.arithmetic == what) set = element_set(set | 1u << int(t.type));
  return set;
}
constexpr element_set only(dtype t) { return element_set(1u << int(t)); }
inline constexpr element_set reals = only(arithmetic_of::real), complexes = only(arithmetic_of::complex),
                             integers = only(arithmetic_of::integer), masks = only(arithmetic_of::logical),
                             all_elements = (1u << element_types) - 1u;
constexpr bool contains(element_set set, dtype t) { return (set >> int(t)) & 1u; }
/// The element types that satisfy a condition: `types_with([](dtype t) { return has_sums(t); })`.
template <class Condition>
constexpr element_set types_with(const Condition& condition) {
  element_set set = 0;
  for (const dtype_traits& t : dtype_table)
    if (condition(t.type)) set = element_set(set | only(t.type));
  return set;
}
/// The names of the element types of a set: "f32, f64".
constexpr inplace_name<63> element_names(element_set set) {
  inplace_name<63> all;
  for (const dtype_traits& t : dtype_table)
    if (contains(set, t.type)) all.append(all.empty() ? "" : ", ").append(t.name);
  return all;
}

namespace detail {

/// The element type of a C++ type, as `element_type_of<T>::value`.
template <class T>
struct element_type_of {};
template <dtype E>
struct element_constant {
  static constexpr dtype value = E;
};
template <>
struct element_type_of<float> : element_constant<dtype::f32> {};
template <>
struct element_type_of<double> : element_constant<dtype::f64> {};
template <>
struct element_type_of<std::int32_t> : element_constant<dtype::i32> {};
template <>
struct element_type_of<std::int64_t> : element_constant<dtype::i64> {};
template <>
struct element_type_of<bool> : element_constant<dtype::boolean> {};
template <>
struct element_type_of<half> : element_constant<dtype::f16> {};
template <>
struct element_type_of<bfloat16> : element_constant<dtype::bf16> {};
/// std::complex<T>. Its header takes much compile time, so this one does not include it.
template <template <class> class Complex, class T>
  requires requires(Complex<T> z) {
    z.real() + z.imag();
    element_type_of<T>::value;
  }
struct element_type_of<Complex<T>> : element_constant<complex_of(element_type_of<T>::value)> {
  static_assert(sizeof(Complex<T>) == 2 * sizeof(T));
};

/// True if tensors can hold T.
template <class T>
inline constexpr bool is_element = requires { element_type_of<T>::value; };

}  // namespace detail

template <class T>
inline constexpr dtype dtype_of = [] {
  static_assert(detail::is_element<T>,
                "gshard: tensors hold float, double, std::int32_t, std::int64_t, std::complex<float>, std::complex<double>, bool, "
                "gshard::half or gshard::bfloat16");
  if constexpr (detail::is_element<T>) return detail::element_type_of<T>::value;
  else return dtype::f32;
}();

}}  // namespace gshard::v0
