// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Decomposes operations along a sharded dim into operations on blocks, where that costs less than gathering the dim.

#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/pass/decompose_cost.hpp>
#include <gshard/core/pass/decomposer.hpp>
#include <gshard/core/reshard/cost.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// Decomposes operations along a sharded dim. Softmax, layer_norm, cross_entropy, cumsum, top_k and their gradients become operations on
/// blocks with small reductions between them. Softmax needs one maximum and one sum per row. Operations keep their kernels if the dim is
/// unsharded, or if gathering their operand is cheaper.
///
/// An argmax is a maximum and the index of that maximum: two collectives, one after the other. It becomes one gather of each block's best
/// element and its index, if may_gather is set and that is known to cost less.
template <class Graph>
constexpr void decompose(Graph& g, const mesh_shape& mesh, const extents& e, bool may_gather = true) {
  bool found = false;
  for (node& n : g.nodes) {
    const int at = detail::line_of(g, n);
    if (at < 0) continue;
    if (!g.rules_of(n.kind).by_blocks) {  // it is not known how
      n.rule.block(n.rule.in[0][at]);
      continue;
    }
    const bool is_sharded = !g.at(n.input(0)).layout[at].empty(), is_made_apart = traits(n.kind).after_extremum;
    if (is_sharded) {
      const detail::decompose_cost cost(g, n, e);
      if (is_made_apart && may_gather && cost.is_best_by_blocks()) {
        n.attr.by_blocks = true;
        found = true;
        continue;
      }
      if (!cost.is_known() || cost.by_rule() <= cost.whole()) {
        found = found || !is_made_apart;
        continue;
      }
    }
    const int line = n.rule.in[0][at];
    if (!is_made_apart) n.rule.block(line);
    else if (is_sharded)
      for (const std::int32_t same : {n.output(), n.input(1)}) g.nodes[std::size_t(g.at(same).producer)].rule.block(line);
  }
  if (found) detail::decomposer(g, mesh).run();
}

}}  // namespace gshard::v0
