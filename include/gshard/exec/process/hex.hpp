// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Bytes as hexadecimal digits.

#include <gshard/core/base/compiler.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace gshard { inline namespace v0 { namespace detail {

/// Two lower-case digits for each byte.
inline std::string hex_of(std::span<const unsigned char> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const unsigned char byte : bytes) text.append({"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]});
  return text;
}

}}}  // namespace gshard::v0::detail
