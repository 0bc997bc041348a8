// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The contraction order of einsums with more than two operands.

#include <gshard/base/list_view.hpp>
#include <gshard/base/packed_list.hpp>
#include <gshard/ir/equation.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The cheapest order in which to contract several operands, two at a time: by multiplications, then by elements of intermediate results.
/// Every set of operands (a bit each) is the contraction of two subsets. Dynamic programming finds the order for all sets, smaller ones
/// first.
class contraction_order {
 public:
  /// extents: by factor.
  constexpr contraction_order(list_view<short_list> operands, const short_list& output, const std::int64_t* extents)
      : operands_(operands), output_(output), extents_(extents) {
    const unsigned all = (1u << operands.size()) - 1u;
    for (unsigned set = 1; set <= all; ++set) {
      way& best = ways_[set];
      if ((set & (set - 1)) == 0) continue;
      for (unsigned left = (set - 1) & set; left > (set & ~left); left = (left - 1) & set) {
        const unsigned right = set & ~left;
        const std::uint32_t met = kept_mask(left) | kept_mask(right);
        const bool fits = set == all || count(kept_mask(set)) <= max_rank;
        const double cost = ways_[left].cost + ways_[right].cost + (fits ? volume(met) + volume(kept_mask(set)) / 1024 : impossible);
        if (best.left == 0 || cost < best.cost) best = {cost, left};
      }
    }
  }

  /// True if no intermediate result has more dims than a tensor may have.
  constexpr bool possible() const { return ways_[(1u << operands_.size()) - 1u].cost < impossible; }
  constexpr unsigned left(unsigned set) const { return ways_[set].left; }
  /// The factors that the contraction of a set keeps, because other operands or the output need them, in order of appearance. For all
  /// operands together: the output.
  constexpr short_list kept(unsigned set) const {
    if (set == (1u << operands_.size()) - 1u) return output_;
    const std::uint32_t mask = kept_mask(set);
    short_list kept;
    for (std::size_t i = 0; i < operands_.size(); ++i)
      for (int d = 0; (set >> i) & 1u && d < operands_[i].size(); ++d)
        if (const int f = operands_[i][d]; (mask >> f) & 1u && !kept.contains(f)) kept.push_back(f);
    return kept;
  }

 private:
  static constexpr double impossible = 1e300;
  struct way {
    double cost = 0;
    unsigned left = 0;
  };
  list_view<short_list> operands_;
  short_list output_;
  const std::int64_t* extents_;
  way ways_[1u << equation::most_operands]{};

  constexpr std::uint32_t kept_mask(unsigned set) const {
    std::uint32_t inside = 0, outside = output_.mask();
    for (std::size_t i = 0; i < operands_.size(); ++i) ((set >> i) & 1u ? inside : outside) |= operands_[i].mask();
    return (set & (set - 1)) == 0 ? inside : inside & outside;
  }
  static constexpr int count(std::uint32_t mask) {
    int n = 0;
    for (; mask != 0; mask &= mask - 1) ++n;
    return n;
  }
  constexpr double volume(std::uint32_t factors) const {
    double v = 1;
    for (int f = 0; factors != 0; ++f, factors >>= 1)
      if (factors & 1u) v *= double(extents_[f]);
    return v;
  }
};

}}}  // namespace gshard::v0::detail
