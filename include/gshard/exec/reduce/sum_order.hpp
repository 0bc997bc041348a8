// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The order in which the operands of a reduction are combined: a binary tree.

#include <gshard/exec/process/error.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// A binary tree over operands. Every operand has a position, and every aligned block of 2^k positions is a subtree: for the positions 0 to
/// 6, ((x0 + x1) + (x2 + x3)) + ((x4 + x5) + x6). Positions without an operand are skipped.
/// Processes that hold an aligned block can therefore combine it first, and the result has the same bits.
class sum_order {
 public:
  /// p operands in positions 0, 1, ...
  explicit sum_order(std::size_t p = 1) : sum_order(counted(p)) {}
  /// The position of each operand; no two are equal.
  explicit sum_order(std::span<const std::uint32_t> positions) {
    if (positions.empty()) throw error("sum_order: a sum without operands");
    std::vector<std::size_t> order(positions.size());
    std::iota(order.begin(), order.end(), std::size_t(0));
    std::ranges::sort(order, {}, [&](std::size_t m) { return positions[m]; });
    root_ = subtree(positions, order);
  }

  std::size_t operands() const { return nodes_.size() + 1; }

  /// A subtree is one operand, or a node: the combination of two subtrees.
  class subtree_id {
   public:
    bool is_operand() const { return id_ >= 0; }
    std::size_t operand() const { return std::size_t(id_); }

   private:
    friend sum_order;
    explicit subtree_id(std::int32_t id) : id_(id) {}
    std::int32_t id_;  // an operand, or ~(index of a node)
  };
  subtree_id root() const { return subtree_id(root_); }
  /// The largest subtrees whose operands have one owner, and the order in which their results are combined.
  struct parts;
  /// owner[m]: the owner of operand m, any number.
  parts split(std::span<const int> owner) const;
  subtree_id left(subtree_id t) const { return subtree_id(nodes_[std::size_t(~t.id_)].left); }
  subtree_id right(subtree_id t) const { return subtree_id(nodes_[std::size_t(~t.id_)].right); }

 private:
  struct node {
    std::int32_t left = 0, right = 0;
  };
  std::vector<node> nodes_;
  std::int32_t root_ = 0;

  static std::vector<std::uint32_t> counted(std::size_t p) {
    std::vector<std::uint32_t> positions(p);
    std::iota(positions.begin(), positions.end(), 0u);
    return positions;
  }
  /// The subtree of some operands, ascending in position. Its halves are on both sides of the highest bit in which positions differ.
  std::int32_t subtree(std::span<const std::uint32_t> positions, std::span<const std::size_t> operands) {
    if (operands.size() == 1) return std::int32_t(operands[0]);
    const std::uint32_t first = positions[operands.front()], last = positions[operands.back()];
    if (first == last) throw error("sum_order: two operands have position " + std::to_string(first));
    const std::uint32_t bit = std::bit_floor(first ^ last);
    const auto middle = std::ranges::find_if(operands, [&](std::size_t m) { return (positions[m] & bit) != 0; });
    const auto n = std::size_t(middle - operands.begin());
    const std::int32_t left = subtree(positions, operands.first(n)), right = subtree(positions, operands.subspan(n));
    return add(left, right);
  }
  std::int32_t add(std::int32_t left, std::int32_t right) {
    nodes_.push_back({left, right});
    return ~std::int32_t(nodes_.size() - 1);
  }
  std::int32_t split(subtree_id t, std::span<const int> owner, parts& into) const;
};

struct sum_order::parts {
  struct part {
    subtree_id subtree;
    int owner;
  };
  std::vector<part> all;  // in the order of the tree
  sum_order between;      // its operand k is the result of part k
};

inline sum_order::parts sum_order::split(std::span<const int> owner) const {
  parts made;
  made.between.root_ = split(root(), owner, made);
  return made;
}
/// Adds the parts of a subtree. Returns the subtree of `into.between` that combines them.
inline std::int32_t sum_order::split(subtree_id t, std::span<const int> owner, parts& into) const {
  if (t.is_operand()) {
    into.all.push_back({t, owner[t.operand()]});
    return std::int32_t(into.all.size() - 1);
  }
  const std::size_t first = into.all.size();
  const std::int32_t x = split(left(t), owner, into), y = split(right(t), owner, into);
  if (into.all.size() - first == 2 && into.all[first].owner == into.all[first + 1].owner) {  // both halves are whole
    into.all[first].subtree = t;
    into.all.pop_back();
    return x;
  }
  return into.between.add(x, y);
}

}}  // namespace gshard::v0
