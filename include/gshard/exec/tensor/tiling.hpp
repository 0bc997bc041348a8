// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Checks that blocks tile a region: every element is in exactly one block.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/interval.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/kernel/view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// A block of a device: its number among the blocks of that device, and its placement in the array.
struct owned_block {
  int device = 0;
  std::int64_t number = 0;
  kernel::placement at;
};

/// The elements that two blocks have in common. May be empty.
kernel::placement intersection(const kernel::placement& a, const kernel::placement& b);

/// An error text that names the first element of the region that is in no block or in several. Empty if the blocks tile the region.
std::string problem_of_tiling(const kernel::placement& region, const std::vector<owned_block>& blocks);

#if GSHARD_HAS_BODIES

GSHARD_INLINE kernel::placement intersection(const kernel::placement& a, const kernel::placement& b) {
  kernel::placement both = a;
  for (std::size_t d = 0; d < std::size_t(a.rank); ++d) {
    const interval common = interval{a.offset[d], a.offset[d] + a.extent[d]}.common({b.offset[d], b.offset[d] + b.extent[d]});
    both.offset[d] = common.begin;
    both.extent[d] = std::max<std::int64_t>(0, common.size());
  }
  return both;
}

/// Sweeps one dim after another from block edge to block edge. Between two edges the same blocks cover the region.
class tiling_sweep {
 public:
  explicit tiling_sweep(const kernel::placement& region) : region_(region) {}

  /// True if an element of the region is not in exactly one block. `at` is then the first such element, and `blocks` are its blocks.
  bool finds_fault(std::vector<const owned_block*> these, int dim = 0) {
    if (dim == region_.rank) {
      blocks = std::move(these);
      return blocks.size() != 1;
    }
    const auto d = std::size_t(dim);
    const auto begin_of = [d](const owned_block* b) { return b->at.offset[d]; };
    const auto end_of = [d](const owned_block* b) { return b->at.offset[d] + b->at.extent[d]; };
    std::ranges::sort(these, {}, begin_of);
    std::vector<const owned_block*> here;
    std::size_t next = 0;
    for (std::int64_t i = region_.offset[d], end = i + region_.extent[d]; i < end;) {
      std::erase_if(here, [&](const owned_block* b) { return end_of(b) <= i; });
      for (; next < these.size() && begin_of(these[next]) <= i; ++next)
        if (end_of(these[next]) > i) here.push_back(these[next]);
      at.push_back(i);
      if (finds_fault(here, dim + 1)) return true;
      at.pop_back();
      i = next < these.size() ? std::min(end, begin_of(these[next])) : end;
      for (const owned_block* b : here) i = std::min(i, end_of(b));
    }
    return false;
  }

  std::vector<std::int64_t> at;
  std::vector<const owned_block*> blocks;

 private:
  const kernel::placement& region_;
};

GSHARD_INLINE std::string problem_of_tiling(const kernel::placement& region, const std::vector<owned_block>& blocks) {
  if (kernel::element_count(region.rank, region.extent) == 0) return {};
  std::vector<const owned_block*> all;
  for (const owned_block& b : blocks)
    if (kernel::element_count(b.at.rank, b.at.extent) > 0) all.push_back(&b);
  tiling_sweep sweep(region);
  if (!sweep.finds_fault(std::move(all))) return {};
  const std::string element = "element " + extents_text(sweep.at);
  if (sweep.blocks.empty()) return element + " is in no block";
  const auto text = [](const owned_block& b) { return "block " + std::to_string(b.number) + " of device " + std::to_string(b.device); };
  return element + " is in " + text(*sweep.blocks[0]) + " and in " + text(*sweep.blocks[1]);
}

#endif

}}}  // namespace gshard::v0::detail
