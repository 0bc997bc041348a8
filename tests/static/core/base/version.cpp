// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/base/version.hpp>

#include <array>
#include <cstddef>

namespace gs = gshard;

// "1.2.3", as for CMake's project().
static_assert([] {
  int dots = 0;
  for (const char c : gs::version) {
    if (c != '.' && (c < '0' || c > '9')) return false;
    dots += c == '.';
  }
  return dots == 2 && gs::version.front() != '.' && gs::version.back() != '.';
}());
static_assert(gs::version == GSHARD_PROJECT_VERSION);  // read from the header by CMake

// Macros and text are equal, and each number has two digits of GSHARD_VERSION.
constexpr auto numbers = [] {
  std::array<int, 3> n{};
  std::size_t at = 0;
  for (const char c : gs::version)
    if (c == '.')
      ++at;
    else
      n[at] = 10 * n[at] + (c - '0');
  return n;
}();
static_assert(numbers == std::array{GSHARD_VERSION_MAJOR, GSHARD_VERSION_MINOR, GSHARD_VERSION_PATCH});
static_assert(GSHARD_VERSION == 10000 * numbers[0] + 100 * numbers[1] + numbers[2] && numbers[1] < 100 && numbers[2] < 100);

// For the preprocessor.
#if GSHARD_VERSION < 100
#error "GSHARD_VERSION is no number for the preprocessor"
#endif
#if defined(GSHARD_TEXT_OF) || defined(GSHARD_TEXT_OF_EXPANDED)
#error "helper macros are left behind"
#endif
