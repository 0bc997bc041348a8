// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Levels of a processor's instruction set, for which the compiled library has kernels.

#include <gshard/core/base/compiled.hpp>

#include <cstdint>
#include <string_view>

#if GSHARD_HAS_BODIES
#include <gshard/exec/process/error.hpp>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#endif

namespace gshard { inline namespace v0 {

/// `base` is the level of the compiler's flags. The others are x86-64-v3 (AVX2, FMA) and x86-64-v4 (AVX-512).
enum class cpu_level : std::uint8_t { base, x86_64_v3, x86_64_v4 };

constexpr std::string_view name(cpu_level l) {
  return l == cpu_level::base ? "base" : l == cpu_level::x86_64_v3 ? "x86-64-v3" : "x86-64-v4";
}

namespace detail {

/// The highest level for which this process has kernels.
#if GSHARD_HEADER_ONLY
inline constexpr cpu_level highest_level = cpu_level::base;
#else
extern const cpu_level highest_level;  // in cmake/kernels.cpp
#endif

/// The highest level of this processor with kernels, or a lower one that the environment variable GSHARD_CPU_LEVEL names: base, v3 or v4.
/// Throws `gshard::error` for any other value.
cpu_level this_cpu_level();

#if GSHARD_HAS_BODIES

GSHARD_INLINE cpu_level this_cpu_level() {
  cpu_level here = cpu_level::base;
#if defined(__x86_64__)
  unsigned a = 0, b = 0, first = 0, extended = 0, d = 0;
  const bool known = __get_cpuid(1, &a, &b, &first, &d) != 0 && __get_cpuid(0x80000001, &a, &b, &extended, &d) != 0;
  const bool has_rest = known && (first & bit_MOVBE) != 0 && (first & bit_F16C) != 0 && (extended & bit_LZCNT) != 0;
  if (has_rest && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
      __builtin_cpu_supports("bmi2")) {
    here = cpu_level::x86_64_v3;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
      here = cpu_level::x86_64_v4;
  }
#endif
  const char* const wanted = std::getenv("GSHARD_CPU_LEVEL");
  const cpu_level highest = std::min(here, highest_level);
  if (wanted == nullptr || *wanted == 0) return highest;
  const std::string_view names[] = {"base", "v3", "v4"};
  const auto* const found = std::find(std::begin(names), std::end(names), wanted);
  if (found == std::end(names)) throw error("GSHARD_CPU_LEVEL is base, v3 or v4, not '" + std::string(wanted) + "'");
  return std::min(highest, cpu_level(found - std::begin(names)));
}

#endif

}}}  // namespace gshard::v0::detail
