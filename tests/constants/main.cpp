// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#define DOCTEST_CONFIG_IMPLEMENT  // of what tests share
#include "check.hpp"

int main() {
  std::cout << constants::checked << " programs, " << constants::wrong << " with different plans\n";
  return constants::checked == 0 || constants::wrong != 0;
}
