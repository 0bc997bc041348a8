// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "held.hpp"
#include "request.hpp"

#include <gshard/comm/device_group.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

// The bytes that devices receive in a step, counted as exec/collective/collective_step.hpp and comm/reduce.hpp move them.
namespace planning {

namespace detail {

/// Bytes of larger meshes are the planner's estimate.
inline constexpr int most_counted = 256;

class counter {
 public:
  counter(const planned& p, const gs::node& n) : p_(p), kind_(n.kind), axes_(n.attr.axes) {
    if (kind_ == gs::op::looped_einsum) {  // a gather block by block, or sums of blocks that travel
      gs::value from = p.at(gs::ring_operand(n)), to = from;
      if (!gs::ring_carries_sum(n)) kind_ = gs::op::all_gather;
      gs::value& whole = gs::ring_carries_sum(n) ? from : to;
      whole.layout = whole.layout.without(axes_);
      add(from, to);
    } else {
      for (int i = 0; i < n.inputs; ++i) add(p.at(n.input(i)), p.at(n.output(i)));
    }
  }

  /// On the device that receives most.
  std::int64_t busiest() const {
    std::int64_t most = 0;
    for (int i = 0; i < gs::device_count(mesh()); ++i) most = std::max(most, received(i));
    return most;
  }

 private:
  struct tensor {
    std::vector<std::int64_t> extents;
    std::vector<holding> before, after;  // by device
    std::int64_t width = 0;
  };
  const planned& p_;
  gs::op kind_;
  std::uint32_t axes_;
  std::vector<tensor> tensors_;

  void add(const gs::value& from, const gs::value& to) {
    tensor& t = tensors_.emplace_back();
    for (int d = 0; d < to.rank(); ++d) t.extents.push_back(p_.sizes.dim(to.dims[d]));
    for (int i = 0; i < gs::device_count(mesh()); ++i) {
      t.before.push_back(held(p_, from, i));
      t.after.push_back(held(p_, to, i));
    }
    t.width = gs::size_of(to.type);
  }
  std::span<const int> mesh() const { return extents_of(p_.tables.mesh); }
  static std::int64_t common(const tensor& t, const holding& has, const holding& wanted) {
    std::int64_t n = 1;
    for (std::size_t d = 0; d < t.extents.size(); ++d) n *= overlap(has[d], wanted[d], t.extents[d]);
    return n;
  }
  static std::int64_t size(const tensor& t, const holding& h) { return common(t, h, h); }

  /// In bytes.
  std::int64_t received(int device) const {
    const gs::device_group group(mesh(), axes_, device);
    if (group.size() == 1) return 0;
    if (kind_ == gs::op::all_reduce) return received_of_sums(group, device);
    std::int64_t bytes = 0;
    for (const tensor& t : tensors_) bytes += received(t, group, device) * t.width;
    return bytes;
  }
  std::int64_t received_of_sums(const gs::device_group& group, int device) const {
    std::int64_t n = 0, most = 0;
    for (const tensor& t : tensors_) {
      n += size(t, t.before[std::size_t(device)]);
      most += size(t, t.before[0]);
    }
    const std::int64_t others = group.size() - 1, width = tensors_[0].width;
    if (most * width * group.size() <= gs::small_sum_bytes) return others * n * width;
    const std::int64_t block = (n + others) / group.size(), begin = std::min(n, group.member() * block);
    const std::int64_t own = std::min(n, begin + block) - begin;
    return (others * own + n - own) * width;
  }
  /// In elements.
  std::int64_t received(const tensor& t, const gs::device_group& group, int device) const {
    const auto me = std::size_t(device);
    if (kind_ == gs::op::looped_einsum) {  // every block passes by, but for the one that it begins with
      std::int64_t n = 0;
      for (int m = 0; m < group.size(); ++m)
        if (m != (group.member() + 1) % group.size()) n += size(t, t.after[std::size_t(group.device(m))]);
      return n;
    }
    if (kind_ == gs::op::reduce_scatter) return (group.size() - 1) * common(t, t.before[me], t.after[me]);
    std::vector<holding> sources;  // every shard once, but for the device's own
    for (int m = 0; m < group.size(); ++m) {
      const holding& h = t.before[std::size_t(group.device(m))];
      if (!(h == t.before[me]) && std::find(sources.begin(), sources.end(), h) == sources.end()) sources.push_back(h);
    }
    std::int64_t n = 0;
    for (const holding& h : sources) n += common(t, h, t.after[me]);
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
