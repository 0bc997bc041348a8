// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The cost of decomposing an operation along a sharded dim (such as softmax) into blocks, compared with gathering that dim.

#include <gshard/core/ir/graph.hpp>
#include <gshard/core/reshard/cost.hpp>
#include <gshard/core/reshard/reshard.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The dim along which an operation needs complete lines, if it can be decomposed into operations on blocks; otherwise -1.
constexpr int line_of(const graph& g, const node& n) {
  switch (traits(n.kind).lines) {
    case line_dim::last: return g.at(n.input(0)).rank() - 1;
    case line_dim::attribute: return n.attr.dim;
    default: return -1;
  }
}

/// The cost of an operation along a sharded dim, in bytes and starts: decomposed into blocks, or with the dim replicated.
class decompose_cost {
 public:
  constexpr decompose_cost(const graph& g, const node& n, const extents& e)
      : g_(g), n_(n), e_(e), at_(line_of(g, n)), sharded_(g.at(n.input(0)).layout[at_]) {}

  /// True if all extents that the choice depends on are known.
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

  /// The cost with the dim replicated, or with its axes moved to another dim: the reshards of operands and results. Results that several
  /// devices compute cost as much as sending them, as for every operation.
  constexpr std::int64_t whole() const {
    const short_list& dims = n_.rule.in[0];
    std::int64_t best = whole(-1);
    for (int d = 0; d < dims.size(); ++d)
      if (d != at_ && n_.rule.out[0].contains(dims[d]) && !n_.rule.is_blocked(dims[d]))
        if (const std::int64_t other = whole(dims[d]); other < best) best = other;
    return best;
  }

  /// True if the cheapest argmax gathers each block's best element and its index, instead of two reductions or replication.
  constexpr bool is_best_by_blocks() const {
    if (!has_blocks()) return false;
    // One pass over a block for value and index together is slower than one pass for each. The difference, as bytes sent per element:
    constexpr std::int64_t slower = 8;
    const value& x = g_.at(n_.input(0));
    const std::int64_t cost = by_blocks();
    return cost < whole() && cost + slower * shard_elements(x.dims, x.layout, e_) < by_rule();
  }
  /// The cost by the rule of the operation, if decomposed into operations on blocks.
  constexpr std::int64_t by_rule() const { return g_.rules_of(n_.kind).cost_by_blocks(*this); }

  // For these rules.
  constexpr const node& of() const { return n_; }
  constexpr const value& operand() const { return g_.at(n_.input(0)); }
  constexpr const value& result() const { return g_.at(n_.output()); }
  constexpr const extents& at() const { return e_; }
  /// The sharding of a tensor like the operand without the line.
  constexpr sharding rows() const {
    sharding s = sharding::replicated(operand().rank() - 1);
    for (int d = 0, to = 0; d < operand().rank(); ++d)
      if (d != at_) s[to++] = operand().layout[d];
    return s;
  }
  /// The same, as a partial sum over the axes of the line.
  constexpr sharding partial_rows() const {
    sharding s = rows();
    s.partial = std::uint8_t(sharded_.mask());
    return s;
  }
  /// The operand's sharding, with the line replicated.
  constexpr sharding with_whole_line() const { return operand().layout.without(sharded_.mask()); }
  /// The number of lines of a device.
  constexpr std::int64_t lines() const { return shard_elements(row().dims, rows(), e_); }
  /// The number of other blocks of a line.
  constexpr std::int64_t other_blocks() const { return e_.devices(sharded_.mask()) - 1; }
  /// The cost of an all_reduce of one number per line.
  constexpr std::int64_t sum_of_lines() const { return plan_reshard(row(), partial_rows(), rows(), e_).cost(e_); }
  /// The cost of resharding the operands of this rank.
  constexpr std::int64_t operands(const sharding& to) const {
    std::int64_t total = 0;
    for (int i = 0; i < n_.inputs; ++i) {
      const value& v = g_.at(n_.input(i));
      if (v.rank() == to.rank && (i == 0 || n_.input(i) != n_.input(0))) total += plan_reshard(v, complete(v.layout), to, e_).cost(e_);
    }
    return total;
  }
  /// The cost of resharding a result to its wanted sharding.
  constexpr std::int64_t moved(const value& v, const sharding& from) const {
    return plan_reshard(v, from, complete(v.layout), e_).cost(e_);
  }
  /// The cost of a decomposition with this number of all_reduces of one number per line. Its results are the blocks of lines, or have one
  /// number per line.
  constexpr std::int64_t with_sums(int count) const {
    std::int64_t total = count * sum_of_lines() + operands(operand().layout);
    for (int o = 0; o < n_.outputs; ++o)
      if (const value& v = g_.at(n_.output(o)); has_lines(o))
        total += moved(v, v.rank() == operand().rank() ? operand().layout : rows());
    return total;
  }

 private:
  const graph& g_;
  const node& n_;
  const extents& e_;
  int at_;
  short_list sharded_;

  constexpr value row() const {
    value v = operand();
    v.dims = {};
    v.layout = rows();
    for (int d = 0; d < operand().rank(); ++d)
      if (d != at_) v.dims.push_back(operand().dims[d]);
    return v;
  }
  static constexpr sharding complete(sharding s) {
    s.partial = 0;
    return s;
  }
  /// True if each block can give its best element for an argmax: no other dim changes, and all extents are known.
  constexpr bool has_blocks() const {
    if (!is_known()) return false;
    short_list rest = n_.rule.in[0];
    rest.erase(at_);
    return rest == n_.rule.out[0] && !rest.contains(n_.rule.in[0][at_]);
  }
  /// The cost of gathering each block's best element together with its index.
  constexpr std::int64_t by_blocks() const {
    const value &x = g_.at(n_.input(0)), &result = g_.at(n_.output());
    const sharding made = result_of(x.layout.without(sharded_.mask()));
    const std::int64_t starts = size_of(x.type) == size_of(dtype::i32) ? 1 : 2;  // tensors with elements of one size share a collective
    const std::int64_t best = size_of(x.type) + size_of(dtype::i32), others = e_.devices(sharded_.mask()) - 1;
    return starts * e_.start_bytes + shard_elements(result.dims, made, e_) * others * best + moved(result, made);
  }
  /// The sharding of a result, given the operand's sharding.
  constexpr sharding result_of(const sharding& x, int o = 0) const {
    const short_list& dims = n_.rule.out[o];
    sharding made = sharding::replicated(dims.size());
    for (int d = 0; d < dims.size(); ++d)
      if (const int from = n_.rule.in[0].find(dims[d]); from >= 0) made[d] = x[from];
    return made;
  }
  /// The sharding with the axes of the line moved to factor `to`, or dropped if there is none.
  constexpr sharding with_line_whole(const sharding& s, const short_list& dims, int to) const {
    sharding there = s.without(sharded_.mask());
    for (int d = 0; d < dims.size(); ++d)
      if (dims[d] == to)
        for (int i = 0; i < sharded_.size(); ++i) there[d].push_back(sharded_[i]);
    return there;
  }
  /// False for a result that is a sum over lines, partial either way. Of a single line, all results have its elements.
  constexpr bool has_lines(int o) const {
    const short_list& dims = n_.rule.in[0];
    for (int d = 0; d < dims.size(); ++d)
      if (d != at_ && !n_.rule.out[o].contains(dims[d])) return false;
    return true;
  }
  constexpr std::int64_t whole(int to) const {
    const value& x = g_.at(n_.input(0));
    const sharding there = with_line_whole(x.layout, n_.rule.in[0], to);
    std::int64_t total = operands(there);
    for (int o = 0; o < n_.outputs; ++o) {
      const value& v = g_.at(n_.output(o));
      if (!has_lines(o)) continue;
      const sharding made = result_of(there, o);
      total += moved(v, made);
      if (to < 0) total += shard_elements(v.dims, made, e_) * size_of(v.type);
    }
    return total;
  }
};

}}}  // namespace gshard::v0::detail
