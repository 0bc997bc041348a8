// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <cstdlib>

// The random programs of a test: GSHARD_RANDOM_SEEDS seeds from GSHARD_RANDOM_FIRST on. tests/run.sh --random sets both.
namespace random_program {

struct seed_range {
  std::uint32_t first, count;

  std::uint32_t end() const { return first + count; }
};

inline seed_range seeds(std::uint32_t otherwise) {
  const auto number = [](const char* name, std::uint32_t none) {
    const char* text = std::getenv(name);
    return text ? std::uint32_t(std::strtoul(text, nullptr, 10)) : none;
  };
  return {number("GSHARD_RANDOM_FIRST", 0), number("GSHARD_RANDOM_SEEDS", otherwise)};
}

}  // namespace random_program
