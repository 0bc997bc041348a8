// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Lists every sharding of a tensor on a mesh, for tests that sweep over them.

#include <gshard/core/ir/sharding.hpp>

#include <cstdint>
#include <vector>

namespace gshard { inline namespace v0 { namespace testing {

/// Every sharding of a tensor of `rank` dims on a mesh of `axes` axes. `pending`: includes partial sums.
constexpr std::vector<sharding> all_shardings(int rank, int axes, bool pending = false) {
  std::vector<sharding> made{sharding::replicated(rank)};
  for (int a = 0; a < axes; ++a) {
    const std::vector<sharding> before = made;
    for (const sharding& s : before) {
      for (int d = 0; d < rank; ++d)
        for (int at = 0; at <= s[d].size(); ++at) {
          sharding t = s;
          t[d].insert(at, a);
          made.push_back(t);
        }
      if (!pending) continue;
      sharding t = s;
      t.partial = std::uint8_t(t.partial | (1u << a));
      made.push_back(t);
    }
  }
  return made;
}

}}}  // namespace gshard::v0::testing
