// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/simulator/run_record.hpp>
#include <gshard/comm/simulator/step_part.hpp>
#include <gshard/pass/network.hpp>
#include <gshard/pass/plan.hpp>
#include <gshard/pass/step_time.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace gshard { inline namespace v0 {

/// The share of its best speed at which a device does its work.
struct efficiency {
  double products = 0.85;          ///< large matrix products; arXiv 2006.16668 section 5.2: more than 85 % of peak
  double batched_products = 0.30;  ///< products of many small matrices, as in attention; the same: more than 30 %
  double memory = 1;               ///< operations that are bound by memory
  /// How often a step of routing (top2_gating and its gradient) goes over its operands and results: devices without an operation of that
  /// kind make it of a chain of comparisons, one-hot masks and running sums.
  double gating_passes = 10;
};

namespace detail {

/// Whether an einsum is a product for each of several indices: on each device, the operands and the result share factors of more than
/// one index together.
inline bool is_batched(const plan_view& plan, const node& n, const extents& e) {
  if (n.inputs != 2) return false;
  const value& x = plan.at(n.input(0));
  std::int64_t batch = 1;
  for (int d = 0; d < x.rank(); ++d) {
    const int factor = n.loops.in[0][d];
    if (n.loops.in[1].contains(factor) && n.loops.out[0].contains(factor)) batch *= shard_extent(x.dims[d], x.layout[d], e);
  }
  return batch > 1;
}

inline bool is_gating(op kind) { return kind == op::top2_gating || kind == op::top2_gating_grad; }

}  // namespace detail

/// What each step of a plan takes on the device with the largest shards, alone: the longer of arithmetic and memory (roofline), then the
/// network, both at once in a looped einsum.
template <network Network>
std::vector<step_record> costs_of(const plan_view& plan, const extents& e, const machine& on, const Network& network,
                                  const efficiency& share = {}) {
  const std::vector<step_part> parts = parts_of(plan);
  std::vector<step_record> costs(plan.steps.size());
  std::map<std::tuple<op, std::uint32_t, std::int64_t>, double> known;  // networks may take long to tell
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const node& n = plan.steps[i];
    step_record& c = costs[i];
    const bool moves = traits(n.kind).collective;
    c.step = std::int32_t(i);
    c.part = parts[i];
    c.flops = detail::flops(plan, n, e);
    c.bytes_touched = detail::bytes_touched(plan, n, e);
    c.bytes_received = plan.bytes_received(n, e);
    if (c.flops > 0) c.arithmetic = c.flops / (on.flops * (detail::is_batched(plan, n, e) ? share.batched_products : share.products));
    if (!moves || n.kind == op::looped_einsum)
      c.memory = double(c.bytes_touched) * (detail::is_gating(n.kind) ? share.gating_passes : 1) / (on.memory_bytes * share.memory);
    if (c.bytes_received > 0) {
      const op kind = n.kind != op::looped_einsum ? n.kind : sums_travel(n) ? op::reduce_scatter : op::all_gather;
      const auto axes = std::uint32_t(n.attr.integer[0]);
      const auto [at, is_new] = known.try_emplace({kind, axes, c.bytes_received}, 0.0);
      if (is_new) at->second = network.seconds(kind, axes, e, c.bytes_received);
      c.network = at->second;
    }
    c.seconds = std::max({c.arithmetic, c.memory, c.network});
    c.bound = c.seconds <= 0                ? limit::nothing
              : c.seconds == c.arithmetic ? limit::arithmetic
              : c.seconds == c.memory     ? limit::memory
                                          : limit::network;
  }
  return costs;
}

}}  // namespace gshard::v0
