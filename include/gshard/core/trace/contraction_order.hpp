// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The contraction order of einsums with more than two operands.

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/base/packed_list.hpp>
#include <gshard/core/ir/equation.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace gshard { inline namespace v0 { namespace detail {

/// The order in which to contract several operands, two at a time. Every set of operands (a bit each) is the contraction of two subsets.
/// For up to 6 operands it is the cheapest: by multiplications, then by elements of intermediate results. Dynamic programming finds it for
/// all sets, smaller ones first. For more operands, each next pair leaves the fewest elements, as opt_einsum's "greedy".
class contraction_order {
 public:
  /// extents: by factor.
  constexpr contraction_order(list_view<short_list> operands, const short_list& output, const std::int64_t* extents)
      : operands_(operands), output_(output), extents_(extents) {
    if (operands.size() > most_exact) contract_greedily();
    else contract_all_sets();
  }

  /// True if no intermediate result has more dims than a tensor may have.
  constexpr bool possible() const {
    return operands_.size() > most_exact ? left(all_operands()) != 0 : ways_[all_operands()].cost < impossible;
  }
  constexpr unsigned left(unsigned set) const {
    if (operands_.size() <= most_exact) return ways_[set].left;
    for (const pair& p : pairs_)
      if (p.left != 0 && (p.left | p.right) == set) return p.left;
    return 0;
  }
  /// The factors that the contraction of a set keeps, because other operands or the output need them, in order of appearance. For all
  /// operands together: the output.
  constexpr short_list kept(unsigned set) const {
    if (set == all_operands()) return output_;
    const std::uint32_t mask = kept_mask(set);
    short_list kept;
    for (std::size_t i = 0; i < operands_.size(); ++i)
      for (int d = 0; (set >> i) & 1u && d < operands_[i].size(); ++d)
        if (const int f = operands_[i][d]; (mask >> f) & 1u && !kept.contains(f)) kept.push_back(f);
    return kept;
  }

 private:
  static constexpr double impossible = std::numeric_limits<double>::infinity();
  static constexpr std::size_t most_exact = 6;
  struct way {
    double cost = 0;
    unsigned left = 0;
  };
  struct pair {
    unsigned left = 0, right = 0;
  };
  list_view<short_list> operands_;
  short_list output_;
  const std::int64_t* extents_;
  way ways_[1u << most_exact]{};
  pair pairs_[equation::most_operands]{};  // of a greedy order

  constexpr unsigned all_operands() const { return (1u << operands_.size()) - 1u; }
  constexpr void contract_all_sets() {
    const unsigned all = all_operands();
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
  constexpr void contract_greedily() {
    unsigned sets[equation::most_operands]{};
    std::size_t count_left = operands_.size();
    for (std::size_t i = 0; i < count_left; ++i) sets[i] = 1u << i;
    for (std::size_t made = 0; count_left > 1; ++made) {
      std::size_t first = 0, second = 0;
      double best = impossible;
      for (std::size_t i = 0; i < count_left; ++i)
        for (std::size_t j = i + 1; j < count_left; ++j) {
          const std::uint32_t a = kept_mask(sets[i]), b = kept_mask(sets[j]), kept = kept_mask(sets[i] | sets[j]);
          if (count_left > 2 && count(kept) > max_rank) continue;
          const double cost = volume(kept) - volume(a) - volume(b);
          if (second != 0 && !(cost < best)) continue;
          best = cost;
          first = i;
          second = j;
        }
      if (second == 0) return;  // no pair has a result of few enough dims
      pairs_[made] = {sets[first], sets[second]};
      sets[first] |= sets[second];
      sets[second] = sets[--count_left];
    }
  }
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
