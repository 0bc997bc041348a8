// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The floating-point environment of a thread: how it rounds, and whether it flushes subnormal numbers to zero.

#include <gshard/core/base/compiled.hpp>

#include <cstdint>
#include <string>

#if GSHARD_HAS_BODIES
#include <bit>
#include <cstddef>
#include <limits>
#endif

namespace gshard { inline namespace v0 { namespace detail {

/// The behavior of a thread's arithmetic, measured by computing, on any processor. A library that is built with -ffast-math sets "flush to
/// zero" in the thread that loads it. All threads that this thread starts later inherit the setting.
struct float_environment {
  enum class rounding : std::uint8_t { to_nearest, upward, downward, toward_zero };

  rounding rounds = rounding::to_nearest;
  bool flushes_results = false;   ///< A result that is subnormal becomes 0.
  bool flushes_operands = false;  ///< An operand that is subnormal counts as 0.

  friend bool operator==(const float_environment&, const float_environment&) = default;

  /// The environment of the calling thread.
  static float_environment here();
  /// "rounding to nearest, subnormal results become 0"
  std::string text() const;
};

#if GSHARD_HAS_BODIES

/// The environment of the arithmetic of one type. Volatile operands make the processor compute, even with -ffast-math.
template <class T, class Bits>
float_environment environment_of_arithmetic() {
  using limits = std::numeric_limits<T>;
  const auto sum = [](T a, T b) {
    volatile T x = a, y = b;
    return x + y;
  };
  const auto product = [](T a, T b) {
    volatile T x = a, y = b;
    return x * y;
  };
  const auto is_zero = [](T x) { return std::bit_cast<Bits>(x) << 1 == 0; };  // comparisons may also flush
  const T most = limits::epsilon() * T(0.75), least = limits::epsilon() * T(0.25);  // parts of the distance from 1 to the next number
  float_environment e;
  if (sum(1, least) > T(1)) e.rounds = float_environment::rounding::upward;
  else if (sum(-1, -least) < T(-1)) e.rounds = float_environment::rounding::downward;
  else if (sum(1, most) == T(1)) e.rounds = float_environment::rounding::toward_zero;
  e.flushes_results = is_zero(product(limits::min(), T(0.5)));
  e.flushes_operands = is_zero(product(std::bit_cast<T>(Bits(1)), T(1) / limits::epsilon() / limits::epsilon()));
  return e;
}

GSHARD_INLINE float_environment float_environment::here() {
  float_environment e = environment_of_arithmetic<double, std::uint64_t>();
  const float_environment f = environment_of_arithmetic<float, std::uint32_t>();
  if (e.rounds == rounding::to_nearest) e.rounds = f.rounds;
  e.flushes_results = e.flushes_results || f.flushes_results;
  e.flushes_operands = e.flushes_operands || f.flushes_operands;
  return e;
}
GSHARD_INLINE std::string float_environment::text() const {
  static constexpr const char* names[] = {"to nearest", "upward", "downward", "toward zero"};
  return "rounding " + std::string(names[std::size_t(rounds)]) + (flushes_results ? ", subnormal results become 0" : "") +
         (flushes_operands ? ", subnormal operands count as 0" : "");
}

#endif

}}}  // namespace gshard::v0::detail
