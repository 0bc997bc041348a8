// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdlib>
#include <string_view>

/// The number of random cases of a test: `most` with GSHARD_EFFORT=all, which tests/run.sh --long sets, otherwise a share of them. With
/// GSHARD_EFFORT=little, which sanitizer runs set, a third of that share.
template <class Count>
Count repetitions(Count most, Count share = 5) {
  const char* const set = std::getenv("GSHARD_EFFORT");
  const std::string_view effort = set ? set : "";
  if (effort == "all") return most;
  if (effort == "little") share *= 3;
  return most / share + (most % share != 0);
}
