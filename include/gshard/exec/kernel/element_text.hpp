// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Elements of arrays as text, for errors.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/ir/dtype.hpp>

#include <string>

#if GSHARD_HAS_BODIES
#include <gshard/core/ir/arithmetic.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/kernel/element.hpp>

#include <type_traits>
#endif

namespace gshard { inline namespace v0 { namespace detail {

/// An element as text: "1 + 2i", "true". `element`: its bytes, aligned as its type.
std::string element_text(dtype type, const void* element);

/// "nan", "-inf", "(1,inf)": numbers that are not finite.
std::string not_finite_text(dtype type, const void* element);

#if GSHARD_HAS_BODIES

GSHARD_INLINE std::string element_text(dtype type, const void* element) {
  return with_element(type, [&]<class T>(T*) -> std::string {
    const T& x = *static_cast<const T*>(element);
    if constexpr (has_parts<T>) {
      const std::string imaginary = number_text(x.imag());
      const bool is_negative = imaginary[0] == '-';
      return number_text(x.real()) + (is_negative ? " - " + imaginary.substr(1) : " + " + imaginary) + "i";
    } else if constexpr (std::is_arithmetic_v<T>) return number_text(x);
    else return number_text(float(x));
  });
}

GSHARD_INLINE std::string not_finite_text(dtype type, const void* element) {
  const auto part = [](double x) { return x != x ? "nan" : number_text(x); };
  return with_element(type, [&]<class T>(T*) -> std::string {
    const T& x = *static_cast<const T*>(element);
    if constexpr (has_parts<T>) return "(" + part(double(x.real())) + "," + part(double(x.imag())) + ")";
    else return part(double(x));
  });
}

#endif

}}}  // namespace gshard::v0::detail
