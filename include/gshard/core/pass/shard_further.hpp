// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Shards optimizer states and gradients over one more mesh axis than their parameters (ZeRO).

#include <gshard/core/ir/graph.hpp>
#include <gshard/core/reshard/cost.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The dim that one more axis shards: the longest unsharded dim, otherwise the dim with the longest shard.
constexpr int longest_dim(const value& v, const sharding& s, const extents& e) {
  int best = -1;
  std::int64_t most = 0;
  for (const bool sharded : {false, true}) {
    for (int d = 0; d < s.rank; ++d) {
      if (s[d].empty() == sharded) continue;
      std::int64_t extent = e.dim(v.dims[d]);
      for (int i = 0; i < s[d].size(); ++i) extent /= e.devices(1u << s[d][i]);
      if (extent <= most) continue;
      most = extent;
      best = d;
    }
    if (best >= 0) break;
  }
  return best;
}

/// Runs after propagation, when the shardings of parameters are known, so the additional axis displaces no other axis. A tensor that has
/// the axis already stays as it is.
constexpr void shard_further(graph& g, const extents& e) {
  for (const sharded_further& f : g.further) {
    sharding s = g.at(f.like).layout;
    if (s.order == 0 && !((s.used() >> f.axis) & 1u))
      if (const int d = longest_dim(g.at(f.like), s, e); d >= 0) s[d].push_back(f.axis);
    sharding own = sharding::replicated(f.dims.size());
    for (int d = 0; d < own.rank; ++d) own[d] = s[f.dims[d]];
    if (own.used()) own.order = s.order;
    g.at(f.value).layout = own;
  }
}

}}}  // namespace gshard::v0::detail
