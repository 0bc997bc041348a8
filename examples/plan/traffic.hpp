// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "request.hpp"

#include <gshard/comm/device_group.hpp>
#include <gshard/pass/windowed.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

// The bytes that devices receive in a step, counted as exec/collective_step.hpp and comm/reduce.hpp move them.
namespace planning {

namespace detail {

/// Bytes of larger meshes are the planner's estimate.
inline constexpr int most_counted = 256;

/// What a device holds of every dim.
using holding = std::array<gs::interval, gs::max_rank>;

class counter {
 public:
  counter(const planned& p, const gs::node& n)
      : p_(p), kind_(n.kind), axes_(std::uint32_t(n.attr.integer[0])), from_(p.at(n.input(0))), to_(p.at(n.output())) {
    if (kind_ == gs::op::looped_einsum) {  // a gather block by block, or sums of blocks that travel
      if (!gs::sums_travel(n)) kind_ = gs::op::all_gather;
      from_ = to_ = p.at(gs::traveller(n));
      gs::value& whole = gs::sums_travel(n) ? from_ : to_;
      whole.layout = whole.layout.without(axes_);
    }
    for (const std::int32_t d : dims()) extents_.push_back(p.sizes.dim(d));
    const int devices = gs::device_count(mesh());
    for (int i = 0; i < devices; ++i) {
      before_.push_back(held(from_, i));
      after_.push_back(held(to_, i));
    }
  }

  /// On the device that receives most.
  std::int64_t busiest() const {
    std::int64_t most = 0;
    for (int i = 0; i < int(before_.size()); ++i) most = std::max(most, received(i));
    return most * gs::size_of(to_.type);
  }

 private:
  const planned& p_;
  gs::op kind_;
  std::uint32_t axes_;
  gs::value from_, to_;
  std::vector<std::int64_t> extents_;
  std::vector<holding> before_, after_;

  std::span<const int> mesh() const { return extents_of(p_.tables.mesh); }
  std::vector<std::int32_t> dims() const {
    std::vector<std::int32_t> list;
    for (int d = 0; d < to_.rank(); ++d) list.push_back(to_.dims[d]);
    return list;
  }
  holding held(const gs::value& v, int device) const {
    holding h{};
    const gs::device_orders orders{p_.tables.orders, gs::device_count(mesh())};
    const auto at = gs::coordinates_of(mesh(), orders.position(v.layout.order, device));
    for (int d = 0; d < v.rank(); ++d) h[std::size_t(d)] = gs::detail::held(v, d, p_.tables.windows, p_.sizes, at);
    return h;
  }
  std::int64_t size(const holding& h) const { return common(h, h); }
  std::int64_t common(const holding& has, const holding& wanted) const {
    std::int64_t n = 1;
    for (std::size_t d = 0; d < extents_.size(); ++d) n *= gs::detail::overlap(has[d], wanted[d], extents_[d]);
    return n;
  }

  /// In elements.
  std::int64_t received(int device) const {
    const gs::device_group group(mesh(), axes_, device);
    const auto me = std::size_t(device);
    const std::int64_t others = group.size() - 1;
    if (others == 0) return 0;
    if (kind_ == gs::op::looped_einsum) {  // every block passes by, but for the one that it begins with
      std::int64_t n = 0;
      for (int m = 0; m < group.size(); ++m)
        if (m != (group.member() + 1) % group.size()) n += size(after_[std::size_t(group.device(m))]);
      return n;
    }
    if (kind_ == gs::op::reduce_scatter) return others * common(before_[me], after_[me]);
    if (kind_ == gs::op::all_reduce) {
      const std::int64_t n = size(before_[me]), width = gs::size_of(to_.type);
      if (size(before_[0]) * width * group.size() <= gs::small_sum_bytes) return others * n;
      const std::int64_t block = (n + others) / group.size(), begin = std::min(n, group.member() * block);
      const std::int64_t own = std::min(n, begin + block) - begin;
      return others * own + n - own;
    }
    std::vector<holding> sources;  // every shard once, but for the device's own
    for (int m = 0; m < group.size(); ++m) {
      const holding& h = before_[std::size_t(group.device(m))];
      if (!(h == before_[me]) && std::find(sources.begin(), sources.end(), h) == sources.end()) sources.push_back(h);
    }
    std::int64_t n = 0;
    for (const holding& h : sources) n += common(h, after_[me]);
    return n;
  }
};

}  // namespace detail

/// Bytes that the busiest device receives in a step: exactly on meshes of up to 256 devices, whatever the extents; beyond, the planner's
/// estimate, which is exact where extents divide.
inline std::int64_t bytes_received(const planned& p, const gs::node& n) {
  if (!gs::traits(n.kind).collective) return 0;
  if (gs::device_count(extents_of(p.tables.mesh)) > detail::most_counted) return p.view().bytes_received(n, p.sizes);
  return detail::counter(p, n).busiest();
}

}  // namespace planning
