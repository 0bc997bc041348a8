// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Places experts on devices by measured demand: replicates hot experts, and balances the load of the devices.

#include <gshard/core/base/compiled.hpp>
#include <gshard/moe/placement/expert_packing.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/exec/process/error.hpp>

#include <algorithm>
#include <limits>
#include <utility>
#endif

namespace gshard { inline namespace v0 {

/// A lower bound of the load of the busiest device, over all placements in which the replicas of an expert share its load equally. It is
/// the maximum of:
/// - the mean load of a device;
/// - the load of the hottest replica, if all further replicas go to the hottest experts;
/// - the load of a replica of the hottest expert plus the least load of the other slots of its device;
/// - without further replicas: one device has k + 1 of the k * devices + 1 hottest experts. The least load of such a device.
/// Throws `gshard::error` as expert_placement does.
/// @see expert_placement
double least_device_load(std::span<const double> load, const expert_devices& on);

/// The experts that devices hold: each expert at least once, hot ones several times. A plain value, independent of any run. All processes
/// compute the same placement from the same loads.
class expert_placement {
 public:
  /// Places experts by their load, such as the tokens that choose each one. It begins with the greedy algorithm (replicate the hottest,
  /// place the largest first), over all devices and over each node. Exchanges improve it, so it is never worse. Replicas of an expert are
  /// on few nodes, if that costs at most 0.1 %.
  /// Throws `gshard::error` if there are more experts than slots, if `nodes` does not divide `devices`, or if a load is negative or not
  /// finite.
  /// @see least_device_load, placed_experts
  expert_placement(std::span<const double> load, const expert_devices& on);
  /// The initial placement of a model: replica r of R is expert floor(r * E / R).
  static expert_placement even(int experts, const expert_devices& on);
  /// The placement with these experts in its slots. Throws `gshard::error` if an expert has no slot, an entry is not an expert, or the
  /// number of entries is not the number of slots.
  static expert_placement of(std::vector<int> expert, int experts, const expert_devices& on);

  const expert_devices& on() const { return on_; }
  int experts() const { return experts_; }
  /// The expert of each slot. The slots of device d are [d * slots, (d + 1) * slots).
  const std::vector<int>& expert() const { return expert_; }
  /// The number of replicas of an expert.
  int replicas(int e) const;

  /// The load of each device. The replicas of an expert share its load equally.
  std::vector<double> device_loads(std::span<const double> load) const;
  /// The load of the busiest device divided by the mean load. 1 without any load.
  double imbalance(std::span<const double> load) const;
  /// The fraction of its capacity slots that the busiest device fills, at most 1: the `filled_slots` for a dry run. `slots`: the capacity
  /// slots of one replica, summed over the token groups.
  /// Throws `gshard::error` if `slots` is not above 0.
  /// @see efficiency
  double filled_slots(std::span<const double> load, double slots) const;

  /// The same sets of experts on other devices, with as few replicas moved from `before` as possible: first between nodes, then between the
  /// devices of a node. A replica that stays on its device stays in its slot.
  /// Throws `gshard::error` if `before` has other devices or slots.
  expert_placement closest_to(const expert_placement& before) const;
  /// The number of replicas that a move from `before` must send: those that a device lacks in `before`, summed over the devices.
  int moved_from(const expert_placement& before) const;

  friend bool operator==(const expert_placement&, const expert_placement&) = default;

 private:
  std::string size_text() const;
  expert_devices on_;
  int experts_;
  std::vector<int> expert_;

  expert_placement(const expert_devices& on, int experts);

  /// The number of replicas that two blocks of `n` slots have in common.
  std::int64_t common(std::size_t at, const expert_placement& other, std::size_t other_at, std::size_t n) const;
  /// The device at slot `to` gets the experts of a device of `from`. Experts that it had `before` keep their slots.
  void keep_slots(std::size_t to, const expert_placement& before, const expert_placement& from, std::size_t from_at);
  /// Permutes devices so that the devices of a node share experts. Each node in turn takes the device that shares most experts with it.
  void gather_on_nodes();
};

#if GSHARD_HAS_BODIES

namespace detail {

/// Throws if the experts do not fit on the devices, or a load is negative or not finite.
inline void check_expert_devices(std::span<const double> load, const expert_devices& on) {
  const auto refuse = [](const std::string& why) { throw error("expert_placement: " + why); };
  if (on.devices < 1 || on.slots < 1 || on.nodes < 1 || on.devices % on.nodes != 0)
    refuse(std::to_string(on.devices) + " devices with " + std::to_string(on.slots) + " slots each on " + std::to_string(on.nodes) +
           " nodes");
  if (load.empty() || load.size() > std::size_t(on.replicas()))
    refuse(std::to_string(load.size()) + " experts for " + std::to_string(on.replicas()) + " slots");
  for (std::size_t e = 0; e < load.size(); ++e)
    if (!(load[e] >= 0 && load[e] <= std::numeric_limits<double>::max()))
      refuse("the load of expert " + std::to_string(e) + " is " + std::to_string(load[e]));
}

}  // namespace detail

GSHARD_INLINE double least_device_load(std::span<const double> load, const expert_devices& on) {
  detail::check_expert_devices(load, on);
  std::vector<double> sorted(load.begin(), load.end());
  std::ranges::sort(sorted);
  const std::size_t n = sorted.size(), devices = std::size_t(on.devices), others = std::size_t(on.slots) - 1;
  const std::size_t further = std::size_t(on.replicas()) - n;
  double total = 0;
  for (const double x : sorted) total += x;
  double least_load = total / double(devices);

  std::vector<double> replicas(n, 1);
  const auto hottest = [&] {
    std::size_t best = 0;
    for (std::size_t e = 1; e < n; ++e)
      if (sorted[e] / replicas[e] > sorted[best] / replicas[best]) best = e;
    return best;
  };
  for (std::size_t i = 0; i < further; ++i) ++replicas[hottest()];
  least_load = std::max(least_load, sorted[hottest()] / replicas[hottest()]);

  const auto least = [&](std::size_t k) {  // the least total load of k experts
    double sum = 0;
    for (std::size_t e = 0; e < std::min(k, n); ++e) sum += sorted[e];
    return sum;
  };
  double with_hottest = std::numeric_limits<double>::infinity();
  for (std::size_t more = 0; more <= further; ++more) {  // further replicas of the hottest expert; the others have `left`
    const std::size_t left = further - more;
    for (std::size_t k = others - std::min(left, others); k <= others; ++k)  // k different experts in the other slots
      with_hottest = std::min(with_hottest, sorted.back() / double(1 + more) + least(k) / double(1 + left - (others - k)));
  }
  least_load = std::max(least_load, with_hottest);

  for (std::size_t k = 1; further == 0 && k <= others; ++k) {
    double sum = least(others - k);
    for (std::size_t i = 0; i <= k; ++i) sum += sorted[n - k * devices - 1 + i];
    least_load = std::max(least_load, sum);
  }
  return least_load;
}

GSHARD_INLINE expert_placement::expert_placement(std::span<const double> load, const expert_devices& on)
    : on_(on), experts_(int(load.size())) {
  detail::check_expert_devices(load, on);
  const double least = least_device_load(load, on), enough = 1.001 * least;
  detail::expert_packing best(load, on, 1);
  const double greedy = best.max_load();
  best.improve(least);
  if (on.nodes > 1 && experts_ % on.nodes == 0) {
    detail::expert_packing by_node(load, on, std::size_t(on.nodes));
    by_node.improve(least);
    if (by_node.max_load() <= std::min(greedy, std::max(enough, best.max_load()))) best = by_node;
  }
  const std::uint64_t tries = std::clamp<std::uint64_t>(2000 / std::uint64_t(on.replicas()), 4, 40);
  for (std::uint64_t i = 0; i < tries && best.max_load() > enough; ++i) {
    detail::expert_packing other = best;
    other.shake(i);
    other.improve(least);
    if (other.max_load() < best.max_load()) best = other;
  }
  expert_ = best.experts();
  gather_on_nodes();
}

GSHARD_INLINE expert_placement expert_placement::even(int experts, const expert_devices& on) {
  expert_placement p(on, experts);
  for (int r = 0; r < on.replicas(); ++r) p.expert_[std::size_t(r)] = int(std::int64_t(r) * experts / on.replicas());
  return p;
}

GSHARD_INLINE expert_placement expert_placement::of(std::vector<int> expert, int experts, const expert_devices& on) {
  expert_placement p(on, experts);
  std::vector<char> found(std::size_t(experts), 0);
  if (expert.size() != p.expert_.size())
    throw error("expert_placement: " + std::to_string(expert.size()) + " experts for " + std::to_string(on.replicas()) + " slots");
  for (const int e : expert) {
    if (e < 0 || e >= experts) throw error("expert_placement: expert " + std::to_string(e) + " of " + std::to_string(experts));
    found[std::size_t(e)] = 1;
  }
  if (const auto missing = std::ranges::find(found, 0); missing != found.end())
    throw error("expert_placement: expert " + std::to_string(missing - found.begin()) + " has no slot");
  p.expert_ = std::move(expert);
  return p;
}

GSHARD_INLINE int expert_placement::replicas(int e) const { return int(std::ranges::count(expert_, e)); }

GSHARD_INLINE std::vector<double> expert_placement::device_loads(std::span<const double> load) const {
  if (load.size() != std::size_t(experts_))
    throw error("expert_placement: loads of " + std::to_string(load.size()) + " experts, placed are " + std::to_string(experts_));
  std::vector<double> replicas(load.size(), 0), sums(std::size_t(on_.devices), 0);
  for (const int e : expert_) ++replicas[std::size_t(e)];
  for (std::size_t s = 0; s < expert_.size(); ++s)
    sums[s / std::size_t(on_.slots)] += load[std::size_t(expert_[s])] / replicas[std::size_t(expert_[s])];
  return sums;
}

GSHARD_INLINE double expert_placement::imbalance(std::span<const double> load) const {
  double most = 0, total = 0;
  for (const double x : device_loads(load)) {
    most = std::max(most, x);
    total += x;
  }
  return total > 0 ? most * on_.devices / total : 1;
}

GSHARD_INLINE double expert_placement::filled_slots(std::span<const double> load, double slots) const {
  if (!(slots > 0)) throw error("expert_placement: a replica has " + std::to_string(slots) + " capacity slots");
  const std::vector<double> of_devices = device_loads(load);
  return std::min(1.0, *std::ranges::max_element(of_devices) / (on_.slots * slots));
}

GSHARD_INLINE expert_placement expert_placement::closest_to(const expert_placement& before) const {
  if (before.on_ != on_ || before.experts_ != experts_)
    throw error("expert_placement: " + size_text() + ", but before it was one of " + before.size_text());
  const std::size_t nodes = std::size_t(on_.nodes), per_node = std::size_t(on_.devices) / nodes, slots = std::size_t(on_.slots);
  const auto assign = [&](std::size_t n, std::size_t size, std::size_t from, std::size_t to) {  // n blocks of slots
    std::vector<std::int64_t> score;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) score.push_back(before.common(to + j * size, *this, from + i * size, size));
    return detail::best_assignment(score, n);
  };
  expert_placement moved = *this;
  const std::vector<int> node = assign(nodes, per_node * slots, 0, 0);
  for (std::size_t i = 0; i < nodes; ++i) {
    const std::size_t from = i * per_node * slots, to = std::size_t(node[i]) * per_node * slots;
    const std::vector<int> device = assign(per_node, slots, from, to);
    for (std::size_t d = 0; d < per_node; ++d) moved.keep_slots(to + std::size_t(device[d]) * slots, before, *this, from + d * slots);
  }
  return moved;
}

GSHARD_INLINE int expert_placement::moved_from(const expert_placement& before) const {
  int moved = 0;
  const std::size_t slots = std::size_t(on_.slots);
  for (std::size_t s = 0; s < expert_.size(); ++s) {
    const auto device = before.expert_.begin() + std::ptrdiff_t(s / slots * slots);
    const auto own = expert_.begin() + std::ptrdiff_t(s / slots * slots);
    if (std::find(own, expert_.begin() + std::ptrdiff_t(s), expert_[s]) != expert_.begin() + std::ptrdiff_t(s)) continue;
    moved += std::find(device, device + on_.slots, expert_[s]) == device + on_.slots;
  }
  return moved;
}

GSHARD_INLINE std::string expert_placement::size_text() const {
  return std::to_string(experts_) + " experts on " + std::to_string(on_.devices) + " devices of " + std::to_string(on_.nodes) +
         " nodes, with " + std::to_string(on_.slots) + " slots each";
}

GSHARD_INLINE expert_placement::expert_placement(const expert_devices& on, int experts) : on_(on), experts_(experts) {
  detail::check_expert_devices(std::vector<double>(std::size_t(std::max(experts, 0)), 1.0), on);
  expert_.resize(std::size_t(on.replicas()));
}

GSHARD_INLINE std::int64_t expert_placement::common(std::size_t at, const expert_placement& other, std::size_t other_at,
                                                    std::size_t n) const {
  std::vector<int> left(std::size_t(experts_), 0);
  std::int64_t both = 0;
  for (std::size_t s = at; s < at + n; ++s) ++left[std::size_t(expert_[s])];
  for (std::size_t s = other_at; s < other_at + n; ++s)
    if (left[std::size_t(other.expert_[s])]-- > 0) ++both;
  return both;
}

GSHARD_INLINE void expert_placement::keep_slots(std::size_t to, const expert_placement& before, const expert_placement& from,
                                                std::size_t from_at) {
  const std::size_t slots = std::size_t(on_.slots);
  std::vector<int> wanted(from.expert_.begin() + std::ptrdiff_t(from_at), from.expert_.begin() + std::ptrdiff_t(from_at + slots));
  for (std::size_t s = to; s < to + slots; ++s) {
    const auto same = std::ranges::find(wanted, before.expert_[s]);
    expert_[s] = same == wanted.end() ? -1 : *same;
    if (same != wanted.end()) wanted.erase(same);
  }
  for (std::size_t s = to; s < to + slots; ++s)
    if (expert_[s] < 0) {
      expert_[s] = wanted.front();
      wanted.erase(wanted.begin());
    }
}

GSHARD_INLINE void expert_placement::gather_on_nodes() {
  const std::size_t slots = std::size_t(on_.slots), per_node = std::size_t(on_.devices / on_.nodes);
  for (std::size_t d = 0; on_.nodes > 1 && d < std::size_t(on_.devices); ++d) {
    if (d % per_node == 0) continue;
    const std::size_t begin = d / per_node * per_node * slots, end = d * slots;
    const auto shared = [&](std::size_t device) {
      std::int64_t n = 0;
      for (std::size_t s = device * slots; s < (device + 1) * slots; ++s)
        n += std::find(expert_.begin() + std::ptrdiff_t(begin), expert_.begin() + std::ptrdiff_t(end), expert_[s]) !=
             expert_.begin() + std::ptrdiff_t(end);
      return n;
    };
    std::size_t best = d;
    for (std::size_t other = d + 1; other < std::size_t(on_.devices); ++other)
      if (shared(other) > shared(best)) best = other;
    const auto at = [&](std::size_t device) { return expert_.begin() + std::ptrdiff_t(device * slots); };
    if (best != d) std::swap_ranges(at(d), at(d + 1), at(best));
  }
}

#endif

}}  // namespace gshard::v0
