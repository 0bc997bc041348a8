// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The time of each step of a plan on a device: a roofline model with efficiencies and fusion.

#include <gshard/core/cost/network.hpp>
#include <gshard/core/cost/step_time.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/exec/bind/check_sizes.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/sim/record/run_record.hpp>
#include <gshard/sim/run/step_part.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace gshard { inline namespace v0 {

/// The share of its peak rate at which a device works. The defaults are one set for all models and sizes of arXiv 2006.16668. That paper
/// states the shares of products. The others are fitted to its step times and breakdowns, so they are not physical.
struct efficiency {
  double products = 0.85;          ///< large matrix products; section 5.2: more than 85 % of the peak
  double batched_products = 0.30;  ///< products of many small matrices, as in attention; same section: more than 30 %
  std::int64_t small_product = 256;  ///< a matrix is small if one of the three extents of its product is less
  double memory = 0.95;            ///< operations that are bound by memory; fitted
  double all_to_all = 0.27;        ///< of the links of a torus, in all-to-alls; fitted
  /// The number of passes of top_k_gating and its gradient over their operands and results. Devices without such an operation run a chain
  /// of comparisons, one-hot masks and running sums. Fitted.
  double gating_passes = 55;
  /// An elementwise operation is fused with its producer, or with its only reader, if nothing else reads the tensor between them. A cheap
  /// one is fused with each of its readers. The tensor then does not go through memory. Compilers for such devices do this; the executors
  /// of this library do not.
  bool fusion = true;
  /// The share of expert slots that tokens fill on the busiest device, for which the others wait. Products skip empty slots.
  /// @see expert_placement::filled_slots
  double filled_slots = 1;

  /// Throws `gshard::error` if a share is not above 0 and at most 1.
  void check() const {
    const auto share = [](std::string_view what, double x) {
      if (!(x > 0 && x <= 1))
        throw error("efficiency: " + std::string(what) + " is a share above 0 and at most 1, not " + std::to_string(x));
    };
    share("products", products);
    share("batched_products", batched_products);
    share("memory", memory);
    share("all_to_all", all_to_all);
    share("filled_slots", filled_slots);
    if (!(gating_passes > 0)) throw error("efficiency: gating_passes is above 0, not " + std::to_string(gating_passes));
  }
};

namespace detail {

/// True if an einsum is many products of small matrices. On a device, its batch factors have more than one index together, and the smallest
/// extent of each product is less than `small`.
inline bool is_batched(const plan_view& plan, const node& n, const extents& e, std::int64_t small) {
  const product_extents p = extents_of_product(plan, n, e);
  return p.batch > 1 && p.smallest() < small;
}

/// True for a product that reads every number more than once: a matrix product or a convolution.
inline bool reuses_operands(const node& n) {
  if (!is_contraction(n)) return traits(n.kind).product && n.kind != op::einsum;
  return (n.rule.in[0].mask() & ~n.rule.in[1].mask()) != 0 && (n.rule.in[1].mask() & ~n.rule.in[0].mask()) != 0;
}

/// Marks the dims of capacity slots in the buffers that dispatch fills, by a char per dim of the plan.
inline std::vector<char> slot_dims(const plan_view& plan) {
  std::vector<char> found(plan.dims.size(), 0);
  for (const node& n : plan.steps) {
    const int slot = traits(n.kind).slot_factor;
    const short_list& factors = n.rule.out[0];
    for (int d = 0; slot >= 0 && d < factors.size(); ++d)
      if (factors[d] == slot) found[std::size_t(plan.at(n.output()).dims[d])] = 1;
  }
  return found;
}
/// True for a product of an operand that has capacity slots.
inline bool is_over_slots(const plan_view& plan, const node& n, const std::vector<char>& slots) {
  if (!traits(n.kind).product) return false;
  const dim_list& dims = plan.at(n.input(0)).dims;
  for (int d = 0; d < dims.size(); ++d)
    if (slots[std::size_t(dims[d])]) return true;
  return false;
}

/// The memory traffic of each step if elementwise operations are fused. Fused values do not go through memory.
/// @see efficiency::fusion
class fused_traffic {
 public:
  fused_traffic(const plan_view& plan, const extents& e)
      : plan_(plan), e_(e), fused_(plan.values.size()), maker_(plan.values.size(), -1), first_(plan.values.size(), -1) {
    std::vector<char> needed(plan.values.size());  // in memory
    for (const port& p : plan.outputs) needed[std::size_t(p.value)] = 1;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const node& n = plan.steps[i];
      for (int o = 0; o < n.outputs; ++o)
        if (o >= n.in_place) maker_[std::size_t(n.output(o))] = std::int32_t(i);
      for (int k = 0; k < n.inputs; ++k) {
        const auto v = std::size_t(n.input(k));
        if (first_[v] < 0) first_[v] = std::int32_t(i);
        if (maker_[v] < 0 || !may_fuse(plan.steps[std::size_t(maker_[v])], n, first_[v] == std::int32_t(i))) needed[v] = 1;
      }
    }
    for (std::size_t v = 0; v < fused_.size(); ++v) fused_[v] = char(!needed[v] && first_[v] >= 0);
  }

  std::int64_t bytes(std::int32_t step) const {
    const node& n = plan_.steps[std::size_t(step)];
    std::int64_t bytes = bytes_touched(plan_, n, e_);
    if (bytes == 0) return 0;
    for (int o = 0; o < n.outputs; ++o)
      if (fused_[std::size_t(n.output(o))]) bytes -= shard_bytes(plan_, n.output(o), e_);
    for (int i = 0; i < n.inputs; ++i) {
      const auto v = std::size_t(n.input(i));
      bool again = false;  // each operand is counted once
      for (int k = 0; k < i; ++k) again = again || n.input(k) == n.input(i);
      if (!fused_[v] || again) continue;
      bytes -= shard_bytes(plan_, n.input(i), e_);
      if (first_[v] != step) bytes += sources(n.input(i));
    }
    return std::max(bytes, std::int64_t(0));
  }

 private:
  plan_view plan_;
  const extents& e_;
  std::vector<char> fused_;                 // by value
  std::vector<std::int32_t> maker_, first_;  // by value: the step that makes it, the first that reads it

  /// True if computed from one tensor of its size, and maybe smaller ones, without random numbers.
  bool is_cheap(const node& n) const {
    if (!traits(n.kind).recomputable) return false;
    std::int64_t read = 0;
    for (int i = 0; i < n.inputs; ++i) read += shard_bytes(plan_, n.input(i), e_);
    return read < 2 * shard_bytes(plan_, n.output(), e_);
  }
  /// Cheap operations are fused with each of their readers, others with their only reader.
  bool may_fuse(const node& from, const node& to, bool only) const {
    if (traits(from.kind).alias || traits(to.kind).alias || traits(from.kind).collective || traits(to.kind).collective) return false;
    if (is_cheap(from) && !reuses_operands(to)) return true;
    return only && (traits(to.kind).elementwise || (traits(from.kind).elementwise && !reuses_operands(to)));
  }
  /// Bytes that are read to make a value again.
  std::int64_t sources(std::int32_t v) const {
    if (!fused_[std::size_t(v)]) return shard_bytes(plan_, v, e_);
    const node& n = plan_.steps[std::size_t(maker_[std::size_t(v)])];
    std::int64_t bytes = 0;
    for (int i = 0; i < n.inputs; ++i) bytes += sources(n.input(i));
    return bytes;
  }
};

}  // namespace detail

/// The time of each step of a plan alone, on the device with the largest shards. Local: the longer of arithmetic and memory (roofline).
/// Collective: the time of the network; in a looped einsum, the longest of all three. A step that is bound by the network counts as bound
/// by the start if one byte takes more than half as long. On a machine with measured operations, efficiencies and fusion have no effect.
template <network Network>
std::vector<step_record> costs_of(const plan_view& plan, const extents& e, const machine& on, const Network& network,
                                  const efficiency& share = {}) {
  detail::check_sizes(plan, e, "costs of a plan");
  const std::vector<step_part> parts = parts_of(plan);
  const detail::fused_traffic fused(plan, e);
  const std::vector<char> slots = detail::slot_dims(plan);
  const bool is_measured = on.measured.has_operations();
  std::vector<step_record> costs(plan.steps.size());
  std::map<std::tuple<op_ref, std::uint32_t, std::uint32_t, std::int64_t>, double> known;  // networks may take long to answer
  const auto is_start = [&](const step_record& c) {
    const node& n = plan.steps[std::size_t(c.step)];
    return 2 * network.seconds(n.kind, n.attr.axes, e, 1) > c.network;
  };
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const node& n = plan.steps[i];
    step_record& c = costs[i];
    const bool moves = traits(n.kind).collective;
    c.step = std::int32_t(i);
    c.part = parts[i];
    c.recomputed = n.place.recomputed;
    c.flops = flops(plan, n, e);
    c.bytes_touched = share.fusion && !is_measured ? fused.bytes(c.step) : bytes_touched(plan, n, e);
    c.bytes_received = plan.bytes_received(n, e);
    const bool small = detail::is_batched(plan, n, e, share.small_product);
    if (c.flops > 0)
      c.arithmetic = detail::seconds_of_arithmetic(plan, n, e, on) * (detail::is_over_slots(plan, n, slots) ? share.filled_slots : 1) /
                     (is_measured ? 1 : small ? share.batched_products : share.products);
    if (!moves || is_looped_product(n.kind))
      c.memory = detail::seconds_of_memory(n.kind, c.bytes_touched, on) *
                 (is_measured ? 1 : (traits(n.kind).gates ? share.gating_passes : 1) / share.memory);
    if (c.bytes_received > 0) {
      const std::uint32_t axes = n.attr.axes, replicas = detail::replica_axes(plan, n, e);
      const auto [at, is_new] = known.try_emplace({n.kind, axes, replicas, c.bytes_received}, 0.0);
      if (is_new) at->second = detail::seconds_on(network, n.kind, axes, e, c.bytes_received, replicas);
      c.network = at->second;
      if constexpr (network_of_nodes<Network>)
        c.bytes_between_nodes = network.bytes_between_nodes(n.kind, axes, e, c.bytes_received, replicas);
    }
    c.seconds = std::max({c.arithmetic, c.memory, c.network});
    c.bound = c.seconds <= 0                ? limit::nothing
              : c.seconds == c.arithmetic ? limit::arithmetic
              : c.seconds == c.memory     ? limit::memory
              : is_start(c)               ? limit::start
                                          : limit::network;
  }
  return costs;
}

}}  // namespace gshard::v0
