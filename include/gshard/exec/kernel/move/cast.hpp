// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Conversion between element types (cast).

#include <gshard/core/base/bf16.hpp>
#include <gshard/exec/kernel/element.hpp>
#include <gshard/exec/kernel/threads.hpp>

#include <Eigen/Core>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace gshard { inline namespace v0 { namespace kernel {

namespace detail {

template <class T>
inline constexpr bool is_half_precision = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

/// To(x). Between a real and a complex type: the real part, or the imaginary part if `imaginary`.
template <class To, class From>
To converted(const From& x, bool imaginary = false) {
  using gshard::detail::is_complex_number;
  if constexpr (is_complex_number<From> && is_complex_number<To>) {
    return {static_cast<typename To::value_type>(x.real()), static_cast<typename To::value_type>(x.imag())};
  } else if constexpr (is_complex_number<From>) {
    return converted<To>(imaginary ? x.imag() : x.real());
  } else if constexpr (is_complex_number<To>) {
    using part = typename To::value_type;
    const auto value = converted<part>(x);
    return imaginary ? To(part(0), value) : To(value, part(0));
  } else if constexpr (is_half_precision<From>) {
    return converted<To>(static_cast<float>(x));
  } else if constexpr (is_half_precision<To>) {
    return To(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    constexpr From beyond = -From(std::numeric_limits<To>::lowest());
    return x >= beyond ? std::numeric_limits<To>::max() : x > -beyond ? static_cast<To>(x) : std::numeric_limits<To>::lowest();
  } else if constexpr (std::is_same_v<To, std::int32_t> && std::is_same_v<From, std::int64_t>) {
    using limits = std::numeric_limits<To>;
    return x > limits::max() ? limits::max() : x < limits::lowest() ? limits::lowest() : static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace detail

namespace detail {
template <class From, class To>
void convert_row(const std::byte* from, std::byte* to, std::int64_t n, bool imaginary) {
  using gshard::detail::bf16;
  const From* const x = reinterpret_cast<const From*>(from);
  To* const y = reinterpret_cast<To*>(to);
  if constexpr (std::is_same_v<From, float> && std::is_same_v<To, bfloat16>) {
    bf16* const words = reinterpret_cast<bf16*>(to);
    for (std::int64_t i = 0; i < n; ++i) words[i] = gshard::detail::to_bf16(x[i]);
  } else if constexpr (std::is_same_v<From, bfloat16> && std::is_same_v<To, float>) {
    const bf16* const words = reinterpret_cast<const bf16*>(from);
    for (std::int64_t i = 0; i < n; ++i) y[i] = gshard::detail::to_float(words[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = converted<To>(x[i], imaginary);
  }
}
}  // namespace detail

/// A conversion between any two element types.
struct conversion {
  void (*row)(const std::byte* from, std::byte* to, std::int64_t n, bool imaginary) = nullptr;
  std::int64_t from_size = 0, to_size = 0;
};
inline void cast(const conversion& how, const std::byte* x, std::byte* y, std::int64_t count, bool imaginary) {
  parallel_rows(count, 1, [=](std::int64_t begin, std::int64_t end) {
    how.row(x + begin * how.from_size, y + begin * how.to_size, end - begin, imaginary);
  });
}

/// y[i] = To(x[i]). From floating point to integers, it rounds towards zero. Numbers out of range become the nearest integer. NaN becomes
/// the lowest integer, which is no valid id. To bool: x[i] != 0. Half precision is converted through float. Between a real and a complex
/// type: to or from the real part, or the imaginary part if `imaginary`.
template <class From, class To>
void cast(const From* x, To* y, std::int64_t count, bool imaginary = false) {
  cast({&detail::convert_row<From, To>, sizeof(From), sizeof(To)}, reinterpret_cast<const std::byte*>(x), reinterpret_cast<std::byte*>(y),
       count, imaginary);
}

}}}  // namespace gshard::v0::kernel
