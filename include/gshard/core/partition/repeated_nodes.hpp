// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Nodes that run again in another sharding, because their operands are smaller than their results: broadcasts, one_hot, lookups, pad, casts
// to a wider type. Resharding the operands and repeating the node sends less than resharding the result.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/partition/strategy.hpp>
#include <gshard/core/reshard/cost.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// True if a node is cheap, reads no random numbers and overwrites nothing. A product is cheap if it sums over no index.
constexpr bool runs_again(const node& n) {
  if (!traits(n.kind).repeatable || n.outputs != 1 || n.in_place > 0) return false;
  if (!traits(n.kind).product) return true;
  std::uint32_t indices = 0;
  for (int i = 0; i < n.inputs; ++i) indices |= n.rule.in[i].mask();
  return (indices & ~n.rule.out[0].mask()) == 0;
}

/// By tensor: 1 if a node that runs again makes it from smaller operands. Each operand lacks one of its dims, has a narrower element type,
/// or is such a tensor itself. Prices decide whether that helps.
// Few calls, because the constexpr evaluator keeps the result of every call.
constexpr list<char> tensors_of_smaller_operands(const graph& g) {
  list<char> found_list(g.values.size(), 0);
  char* const found = found_list.data();
  const value* const values = g.values.data();
  const node* const nodes = g.nodes.data();
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const node& n = nodes[i];
    if (!traits(n.kind).repeatable) continue;
    const value& made = values[n.out[0]];
    bool as_large = false;
    for (int k = 0; k < n.inputs && !as_large; ++k) {
      const value& v = values[n.in[k]];
      if (found[n.in[k]] || v.dims.count < made.dims.count || size_of(v.type) < size_of(made.type)) continue;
      as_large = v.dims.same(made.dims);
      if (as_large) break;
      as_large = true;
      for (int d = 0; d < made.dims.count; ++d) as_large = as_large && v.dims.contains(made.dims[d]);
    }
    if (!as_large && runs_again(n)) found[n.out[0]] = 1;
  }
  return found_list;
}

/// The operand shardings from which a node makes its result in a given sharding.
struct repetition {
  bool possible = false;
  sharding in[sharding_rule::most_in]{};
};
/// Not possible for partial sums, device orders, and sharded dims that are blocked, are read through windows, or result from a merge or a
/// split.
constexpr repetition repeat_in(const node& n, const sharding& made) {
  repetition r;
  const bool merges = n.attr.change == reshape_kind::merge, splits = n.attr.change == reshape_kind::split;
  if (made.partial || made.order || ((merges || splits) && !made[n.attr.dim].empty())) return r;
  if (splits && !made[n.attr.dim + 1].empty()) return r;
  strategy how(0);
  for (int d = 0; d < made.rank; ++d) {
    const int f = n.rule.out[0][d];
    if (made[d].empty()) continue;
    if (n.rule.is_blocked(f) || n.rule.out[0].find(f) != d) return r;
    how.axes_of_factor[f] = made[d];
  }
  for (int i = 0; i < n.inputs; ++i) {
    const short_list& dims = n.rule.in[i];
    r.in[i] = sharding_of(dims, how, {});
    for (int d = 0; d < dims.size(); ++d)
      if (!r.in[i][d].empty() && (window_row(n, i, d) != 0 || dims.find(dims[d]) != d)) return r;
  }
  r.possible = true;
  return r;
}

/// The most repeated nodes that one price follows, so that pricing long chains stays fast.
inline constexpr int most_repeated = 24;

/// Forms of tensors that the price of a repetition counts already: an operand of several nodes is resharded once.
struct priced_forms {
  static constexpr int most = 8;

  int count = 0;
  std::int32_t tensor[most]{};
  sharding layout[most]{};

  constexpr bool full() const { return count == most; }
  constexpr bool has(std::int32_t t, const sharding& s) const {
    for (int i = 0; i < count; ++i)
      if (tensor[i] == t && layout[i].same_layout(s)) return true;
    return false;
  }
  constexpr void add(std::int32_t t, const sharding& s) {
    tensor[count] = t;
    layout[count++] = s;
  }
};

}}}  // namespace gshard::v0::detail
