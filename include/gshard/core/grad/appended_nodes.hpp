// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The nodes of gradients, in the order in which devices run them: the reverse order of the program.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/permute_nodes.hpp>
#include <gshard/core/trace/builder.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The nodes that a differentiation appends, and for each its owner: the node of the program whose gradient it computes.
template <class Builder>
class appended_nodes {
 public:
  constexpr explicit appended_nodes(Builder& b) : b_(b), begin_(b.program.nodes.size()) {}

  /// Names the owner of all nodes appended since the last call.
  constexpr void set_owner(std::int32_t owner) {
    while (begin_ + owners_.size() < b_.program.nodes.size()) owners_.push_back(owner);
  }
  /// Sorts the nodes by owner, the last owner first. Nodes of one owner keep their order.
  constexpr void sort() {
    const std::size_t count = owners_.size();
    bool sorted = true;
    for (std::size_t i = 1; i < count && sorted; ++i) sorted = owners_[i - 1] >= owners_[i];
    if (sorted) return;
    list<std::int32_t> first_of(begin_ + 2, 0);  // by owner, counted from the last one
    const auto rank = [this](std::int32_t owner) { return begin_ - std::size_t(owner); };
    for (const std::int32_t owner : owners_) ++first_of[rank(owner) + 1];
    for (std::size_t r = 1; r < first_of.size(); ++r) first_of[r] += first_of[r - 1];
    list<std::int32_t> from, now;
    for (std::size_t i = 0; i < begin_ + count; ++i) {
      from.push_back(std::int32_t(i));
      now.push_back(std::int32_t(i));
    }
    for (std::size_t i = 0; i < count; ++i) {
      const auto to = begin_ + std::size_t(first_of[rank(owners_[i])]++);
      from[to] = std::int32_t(begin_ + i);
      now[begin_ + i] = std::int32_t(to);
    }
    permute_nodes(b_.program, from.data());
    for (auto& scan : b_.scans)
      for (std::int32_t* at : {&scan.begin, &scan.body, &scan.close, &scan.end}) *at = now[std::size_t(*at)];
  }

 private:
  Builder& b_;
  std::size_t begin_;
  list<std::int32_t> owners_;
};

}}}  // namespace gshard::v0::detail
