// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/ir/sharding.hpp>

#include <cstdint>
#include <vector>

namespace layouts {

/// Every way to lay a tensor of `rank` dims out on a mesh of `axes` axes: each axis cuts one dim (several on
/// one in every order), or none, or, if `pending`, has a sum pending.
constexpr std::vector<gshard::sharding> all(int rank, int axes, bool pending) {
  std::vector<gshard::sharding> list{gshard::sharding::replicated(rank)};
  for (int a = 0; a < axes; ++a) {
    const std::vector<gshard::sharding> before = list;
    for (const gshard::sharding& s : before) {
      for (int d = 0; d < rank; ++d)
        for (int at = 0; at <= s[d].size(); ++at) {
          gshard::sharding t = s;
          t[d].insert(at, a);
          list.push_back(t);
        }
      if (!pending) continue;
      gshard::sharding t = s;
      t.partial = std::uint8_t(t.partial | (1u << a));
      list.push_back(t);
    }
  }
  return list;
}

}  // namespace layouts
