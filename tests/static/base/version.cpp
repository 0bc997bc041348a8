// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/base/version.hpp>

namespace gs = gshard;

// "1.2.3", as CMake's project() takes it.
static_assert([] {
  int dots = 0;
  for (const char c : gs::version) {
    if (c != '.' && (c < '0' || c > '9')) return false;
    dots += c == '.';
  }
  return dots == 2 && gs::version.front() != '.' && gs::version.back() != '.';
}());
