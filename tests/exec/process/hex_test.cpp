// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/process/hex.hpp>

#include <doctest/doctest.h>

#include <cstdio>
#include <string>

TEST_CASE("hex: every byte, as printf writes it") {
  CHECK(gshard::detail::hex_of({}).empty());
  unsigned char all[256];
  std::string text;
  for (int i = 0; i < 256; ++i) {
    all[i] = static_cast<unsigned char>(i);
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned>(i));
    text += two;
  }
  CHECK(gshard::detail::hex_of(all) == text);
}
