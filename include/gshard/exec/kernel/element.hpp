// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The C++ types of element types, and calls of functions with the element type of a tensor.

#include <gshard/core/base/bf16.hpp>
#include <gshard/core/base/compiled.hpp>
#include <gshard/core/ir/dtype.hpp>

#if GSHARD_HAS_BODIES
#include <Eigen/Core>  // half, bfloat16
#endif

#include <complex>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 { namespace detail {

template <dtype E>
struct type_of_element;
template <class T>
struct type_is {
  using type = T;
};
template <>
struct type_of_element<dtype::f32> : type_is<float> {};
template <>
struct type_of_element<dtype::f64> : type_is<double> {};
template <>
struct type_of_element<dtype::i32> : type_is<std::int32_t> {};
template <>
struct type_of_element<dtype::i64> : type_is<std::int64_t> {};
template <>
struct type_of_element<dtype::c64> : type_is<std::complex<float>> {};
template <>
struct type_of_element<dtype::c128> : type_is<std::complex<double>> {};
template <>
struct type_of_element<dtype::boolean> : type_is<bool> {};
template <>
struct type_of_element<dtype::f16> : type_is<half> {};
template <>
struct type_of_element<dtype::bf16> : type_is<bfloat16> {};

/// The C++ type of an element type.
template <dtype E>
using element_of = typename type_of_element<E>::type;

template <class T>
inline constexpr bool is_complex_number = false;
template <class T>
inline constexpr bool is_complex_number<std::complex<T>> = true;

/// A number as an element.
template <class T>
T element_from(double number) {
  if constexpr (is_complex_number<T>) return T(typename T::value_type(number));
  else return T(number);
}

/// Calls f with a null T*, where T is the C++ type of an element type.
template <class F>
decltype(auto) with_element(dtype type, F f) {
  switch (type) {
    case dtype::f32: break;
    case dtype::f64: return f(static_cast<double*>(nullptr));
    case dtype::i32: return f(static_cast<std::int32_t*>(nullptr));
    case dtype::i64: return f(static_cast<std::int64_t*>(nullptr));
    case dtype::c64: return f(static_cast<std::complex<float>*>(nullptr));
    case dtype::c128: return f(static_cast<std::complex<double>*>(nullptr));
    case dtype::boolean: return f(static_cast<bool*>(nullptr));
    case dtype::f16: return f(static_cast<half*>(nullptr));
    case dtype::bf16: return f(static_cast<bfloat16*>(nullptr));
    case dtype::count_: break;
  }
  return f(static_cast<float*>(nullptr));
}

}}}  // namespace gshard::v0::detail
