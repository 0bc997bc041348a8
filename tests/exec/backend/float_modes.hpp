// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Other floating-point environments, for tests.

#include <cfenv>
#include <cstdint>

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

namespace float_modes {

inline constexpr unsigned flush_results = 1u << 15, flush_operands = 1u << 6;  // bits of MXCSR
#if defined(__SSE2__)
inline constexpr bool can_flush = true, flushes_apart = true;
#elif defined(__aarch64__)
inline constexpr bool can_flush = true, flushes_apart = false;  // one bit for both
#else
inline constexpr bool can_flush = false, flushes_apart = false;
#endif

/// While it exists, this thread uses this rounding mode, and flushes.
class mode {
 public:
  explicit mode(int rounding, unsigned flush = 0) {
    std::fegetenv(&before_);
    std::fesetround(rounding);
#if defined(__SSE2__)
    _mm_setcsr(_mm_getcsr() | flush);
#elif defined(__aarch64__)
    std::uint64_t control;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    if (flush != 0) control |= std::uint64_t(1) << 24;
    asm volatile("msr fpcr, %0" : : "r"(control));
#endif
    static_cast<void>(flush);
  }
  mode(const mode&) = delete;
  mode& operator=(const mode&) = delete;
  ~mode() { std::fesetenv(&before_); }

 private:
  std::fenv_t before_;
};

}  // namespace float_modes
