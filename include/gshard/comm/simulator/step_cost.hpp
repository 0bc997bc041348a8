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

/// The share of its best speed at which a device does its work. As it stands: one set for all of the models and sizes of arXiv 2006.16668,
/// of which that paper says what products reach; the others are fitted to its step times and shares, so they are not physical.
struct efficiency {
  double products = 0.85;          ///< large matrix products; section 5.2: more than 85 % of the peak
  double batched_products = 0.30;  ///< products of many small matrices, as in attention; the same: more than 30 %
  std::int64_t small_product = 256;  ///< a matrix is small if one of a product's three extents is less
  double memory = 0.9;             ///< operations that are bound by memory; fitted
  double all_to_all = 0.29;        ///< of the links of a torus, in all-to-alls; fitted
  /// How often a step of routing (top2_gating and its gradient) goes over its operands and results: devices without an operation of that
  /// kind make it of a chain of comparisons, one-hot masks and running sums. Fitted.
  double gating_passes = 50;
  /// An elementwise operation is done on the way of what its operand comes from, or its result goes to, if nothing else reads it: then that
  /// does not go through memory. As compilers for such devices do it; the executors of this library do not.
  bool fusion = true;
};

namespace detail {

/// Whether an einsum is many products of small matrices: on a device, operands and result share factors of more than one index together,
/// and of the extents of each product the smallest is less than so much.
inline bool is_batched(const plan_view& plan, const node& n, const extents& e, std::int64_t small) {
  if (n.inputs != 2) return false;
  std::int64_t batch = 1, of_first = 1, of_second = 1, summed = 1;
  std::uint32_t seen = 0;
  for (int i = 0; i < 2; ++i) {
    const value& x = plan.at(n.input(i));
    for (int d = 0; d < x.rank(); ++d) {
      const int factor = n.loops.in[i][d];
      if ((seen >> factor) & 1u) continue;
      seen |= 1u << factor;
      const bool shared = n.loops.in[1 - i].contains(factor), kept = n.loops.out[0].contains(factor);
      (shared && kept ? batch : shared ? summed : i == 0 ? of_first : of_second) *= shard_extent(x.dims[d], x.layout[d], e);
    }
  }
  return batch > 1 && std::min({of_first, of_second, summed}) < small;
}

inline bool is_elementwise(op kind) { return kind == op::map || kind == op::scale || kind == op::cast || kind == op::dropout; }
inline bool is_product(const node& n) {
  return n.inputs == 2 && (n.kind == op::einsum || n.kind == op::looped_einsum || n.kind == op::convolution);
}

/// The values of a plan that do not go through memory if elementwise operations are fused. @see efficiency::fusion
inline std::vector<char> fused_values(const plan_view& plan) {
  std::vector<int> readers(plan.values.size());
  std::vector<std::int32_t> maker(plan.values.size(), -1), reader(plan.values.size(), -1);
  for (const port& p : plan.outputs) readers[std::size_t(p.value)] = 2;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const node& n = plan.steps[i];
    for (int k = 0; k < n.inputs; ++k) {
      readers[std::size_t(n.input(k))] += reader[std::size_t(n.input(k))] != std::int32_t(i);
      reader[std::size_t(n.input(k))] = std::int32_t(i);
    }
    for (int o = n.in_place; o < n.outputs; ++o) maker[std::size_t(n.output(o))] = std::int32_t(i);
  }
  std::vector<char> fused(plan.values.size());
  for (std::size_t v = 0; v < fused.size(); ++v) {
    if (readers[v] != 1 || maker[v] < 0) continue;
    const node &from = plan.steps[std::size_t(maker[v])], &to = plan.steps[std::size_t(reader[v])];
    if (traits(from.kind).alias || traits(to.kind).alias || traits(from.kind).collective || traits(to.kind).collective) continue;
    fused[v] = is_elementwise(to.kind) || (is_elementwise(from.kind) && !is_product(to));
  }
  return fused;
}
/// Bytes that a step would touch of values that do not go through memory.
inline std::int64_t bytes_spared(const plan_view& plan, const node& n, const extents& e, const std::vector<char>& fused) {
  std::int64_t bytes = 0;
  for (int i = 0; i < n.inputs; ++i)
    if (fused[std::size_t(n.input(i))] && (i == 0 || n.input(i) != n.input(i - 1))) bytes += shard_bytes(plan, n.input(i), e);
  for (int o = 0; o < n.outputs; ++o)
    if (fused[std::size_t(n.output(o))]) bytes += shard_bytes(plan, n.output(o), e);
  return bytes;
}

inline bool is_gating(op kind) { return kind == op::top2_gating || kind == op::top2_gating_grad; }

}  // namespace detail

/// What each step of a plan takes on the device with the largest shards, alone: the longer of arithmetic and memory (roofline), then the
/// network, both at once in a looped einsum.
template <network Network>
std::vector<step_record> costs_of(const plan_view& plan, const extents& e, const machine& on, const Network& network,
                                  const efficiency& share = {}) {
  const std::vector<step_part> parts = parts_of(plan);
  const std::vector<char> fused = share.fusion ? detail::fused_values(plan) : std::vector<char>(plan.values.size());
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
    if (c.bytes_touched > 0) c.bytes_touched = std::max(c.bytes_touched - detail::bytes_spared(plan, n, e, fused), std::int64_t(0));
    c.bytes_received = plan.bytes_received(n, e);
    const bool small = detail::is_batched(plan, n, e, share.small_product);
    if (c.flops > 0) c.arithmetic = c.flops / (on.flops * (small ? share.batched_products : share.products));
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
