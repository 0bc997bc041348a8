// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdlib>
#include <string_view>

/// The number of random cases of a test: `most` with GSHARD_EFFORT=all, which tests/run.sh --long sets, else a share of them.
template <class Count>
Count repetitions(Count most, Count share = 5) {
  const char* const effort = std::getenv("GSHARD_EFFORT");
  return effort && std::string_view(effort) == "all" ? most : most / share + (most % share != 0);
}
