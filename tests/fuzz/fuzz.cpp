// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The entry point of libFuzzer for one target: -DGSHARD_FUZZ_TARGET=header. @see tests/fuzz/run.sh
#include "targets.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::GSHARD_FUZZ_TARGET(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
