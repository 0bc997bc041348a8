// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/ir/graph.hpp>
#include <gshard/pass/cost/cost.hpp>
#include <gshard/pass/reshard/reshard.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The dim along which an operation needs whole lines, if it can also be made of operations on blocks of them; else -1.
constexpr int line_of(const graph& g, const node& n) {
  switch (traits(n.kind).lines) {
    case line_dim::last: return g.at(n.input(0)).rank() - 1;
    case line_dim::attribute: return n.attr.integer[0];
    default: return -1;
  }
}

/// What an operation along a cut line costs, in bytes and starts, if it is taken apart and if its line is made whole.
template <class Graph>
class decompose_cost {
 public:
  constexpr decompose_cost(const Graph& g, const node& n, const extents& e)
      : g_(g), n_(n), e_(e), at_(line_of(g, n)), cut_(g.at(n.input(0)).layout[at_]) {}

  /// Whether all that a choice depends on is known.
  constexpr bool is_known() const {
    std::uint32_t axes = 0;
    const auto look = [&](std::int32_t id) {
      const value& v = g_.at(id);
      axes |= v.layout.used();
      bool known = true;
      for (int d = 0; d < v.rank(); ++d) known = known && e_.knows_dim(v.dims[d]);
      return known;
    };
    for (int i = 0; i < n_.inputs; ++i)
      if (!look(n_.input(i))) return false;
    for (int o = 0; o < n_.outputs; ++o)
      if (!look(n_.output(o))) return false;
    return (axes & ~e_.known_axes) == 0;
  }

  /// With its line whole: to bring the operands there, or to cut another dim meanwhile, and the results to where they are wanted; results
  /// that devices repeat count like sending them, as for every operation.
  constexpr std::int64_t whole() const {
    const short_list& dims = n_.loops.in[0];
    std::int64_t best = whole(-1);
    for (int d = 0; d < dims.size(); ++d)
      if (d != at_ && n_.loops.out[0].contains(dims[d]) && !n_.loops.is_blocked(dims[d]))
        if (const std::int64_t other = whole(dims[d]); other < best) best = other;
    return best;
  }

  /// Whether an argmax had better be made of the best of every block and its place than of two sums, or of whole lines.
  constexpr bool is_best_by_blocks() const {
    if (!has_blocks()) return false;
    // Two passes over a block, one for the best and one for its place, are faster than one for both: as bytes that are sent meanwhile.
    constexpr std::int64_t slower = 8;
    const value& x = g_.at(n_.input(0));
    const std::int64_t cost = by_blocks();
    return cost < whole() && cost + slower * shard_elements(x.dims, x.layout, e_) < apart();
  }
  /// Made of operations on blocks.
  constexpr std::int64_t apart() const {
    const value& x = g_.at(n_.input(0));
    const value& result = g_.at(n_.output());
    const std::int64_t others = e_.devices(cut_.mask()) - 1;
    value row = x;
    row.dims = {};
    row.layout = sharding::replicated(x.rank() - 1);
    for (int d = 0, to = 0; d < x.rank(); ++d)
      if (d != at_) {
        row.dims.push_back(x.dims[d]);
        row.layout[to++] = x.layout[d];
      }
    sharding addends = row.layout;
    addends.partial = std::uint8_t(cut_.mask());
    const std::int64_t sum = plan_reshard(row, addends, row.layout, e_).cost();
    const std::int64_t width = shard_elements(row.dims, row.layout, e_);
    if (n_.kind == op::cross_entropy) return 3 * sum + operands(x.layout) + moved(result, row.layout);
    const std::int64_t lies_cut = operands(x.layout) + moved(result, x.layout);
    switch (n_.kind) {
      case op::softmax_grad: return sum + lies_cut;
      case op::layer_norm_grad: return 4 * sum + lies_cut;
      case op::cumsum: return start_bytes + width * others * size_of(x.type) + lies_cut;
      case op::top_k:
        return start_bytes + width * others * n_.attr.integer[2] * (size_of(x.type) + size_of(dtype::i32)) +
               2 * moved(result, x.layout.without(cut_.mask()));
      case op::argmax: return sum + moved(result, addends);
      default: return 2 * sum + lies_cut;
    }
  }

 private:
  const Graph& g_;
  const node& n_;
  const extents& e_;
  int at_;
  short_list cut_;

  static constexpr sharding complete(sharding s) {
    s.partial = 0;
    return s;
  }
  /// To where a result is wanted.
  constexpr std::int64_t moved(const value& v, const sharding& from) const { return plan_reshard(v, from, complete(v.layout), e_).cost(); }
  /// Whether an argmax can be made of the best of every block: of a real tensor whose other dims stay as they are, of known extents.
  constexpr bool has_blocks() const {
    if (g_.at(n_.input(0)).type == dtype::i32 || !is_known()) return false;
    short_list rest = n_.loops.in[0];
    rest.erase(at_);
    return rest == n_.loops.out[0] && !rest.contains(n_.loops.in[0][at_]);
  }
  /// With the best of every block and its place gathered together.
  constexpr std::int64_t by_blocks() const {
    const value &x = g_.at(n_.input(0)), &result = g_.at(n_.output());
    const sharding made = result_of(x.layout.without(cut_.mask()));
    const std::int64_t starts = size_of(x.type) == size_of(dtype::i32) ? 1 : 2;  // what has elements of one size goes together
    const std::int64_t best = size_of(x.type) + size_of(dtype::i32), others = e_.devices(cut_.mask()) - 1;
    return starts * start_bytes + shard_elements(result.dims, made, e_) * others * best + moved(result, made);
  }
  /// The layout of a result whose operand lies so.
  constexpr sharding result_of(const sharding& x, int o = 0) const {
    const short_list& dims = n_.loops.out[o];
    sharding made = sharding::replicated(dims.size());
    for (int d = 0; d < dims.size(); ++d)
      if (const int from = n_.loops.in[0].find(dims[d]); from >= 0) made[d] = x[from];
    return made;
  }
  /// The operands that have lines.
  constexpr std::int64_t operands(const sharding& to) const {
    std::int64_t total = 0;
    for (int i = 0; i < n_.inputs; ++i) {
      const value& v = g_.at(n_.input(i));
      if (v.rank() == to.rank && (i == 0 || n_.input(i) != n_.input(0))) total += plan_reshard(v, complete(v.layout), to, e_).cost();
    }
    return total;
  }
  /// The axes of the line cut factor `to` instead, or none.
  constexpr sharding with_line_whole(const sharding& s, const short_list& dims, int to) const {
    sharding there = s.without(cut_.mask());
    for (int d = 0; d < dims.size(); ++d)
      if (dims[d] == to)
        for (int i = 0; i < cut_.size(); ++i) there[d].push_back(cut_[i]);
    return there;
  }
  constexpr std::int64_t whole(int to) const {
    const value& x = g_.at(n_.input(0));
    const sharding there = with_line_whole(x.layout, n_.loops.in[0], to);
    std::int64_t total = operands(there);
    const int outputs = n_.kind == op::layer_norm_grad ? 1 : n_.outputs;  // the others are sums over rows, which are pending either way
    for (int o = 0; o < outputs; ++o) {
      const value& v = g_.at(n_.output(o));
      const sharding made = result_of(there, o);
      total += moved(v, made);
      if (to < 0) total += shard_elements(v.dims, made, e_) * size_of(v.type);
    }
    return total;
  }
};

}}}  // namespace gshard::v0::detail
