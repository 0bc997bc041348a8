// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Conversion between element types (cast).

#include <gshard/kernel/threads.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace gshard { inline namespace v0 { namespace kernel {

namespace detail {
template <class To, class From>
To converted(From x) {
  if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    constexpr From beyond = -From(std::numeric_limits<To>::lowest());
    return x >= beyond ? std::numeric_limits<To>::max() : x > -beyond ? static_cast<To>(x) : std::numeric_limits<To>::lowest();
  } else {
    return static_cast<To>(x);
  }
}
}  // namespace detail

/// y[i] = To(x[i]). From floating point to integers, it rounds towards zero. Numbers out of range become the nearest integer. NaN becomes
/// the lowest integer, which is no valid id.
template <class From, class To>
void cast(const From* x, To* y, std::int64_t count) {
  parallel_rows(count, 1, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) y[i] = detail::converted<To>(x[i]);
  });
}

}}}  // namespace gshard::v0::kernel
