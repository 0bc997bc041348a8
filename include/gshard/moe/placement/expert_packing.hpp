// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Packs experts into the slots of devices, by their load.

#include <gshard/core/base/compiled.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/core/base/random.hpp>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#endif

namespace gshard { inline namespace v0 {

/// The devices that hold experts. Successive devices are on one node.
struct expert_devices {
  int devices = 1;
  int slots = 1;  ///< The number of expert replicas that each device has room for.
  int nodes = 1;  ///< Divides `devices`.

  int replicas() const { return devices * slots; }
  friend constexpr bool operator==(const expert_devices&, const expert_devices&) = default;
};

namespace detail {

/// The pairs (i, to[i]) with the largest sum of scores: an assignment of n rows to n columns, by the Hungarian algorithm. `score` is
/// row-major.
std::vector<int> best_assignment(const std::vector<std::int64_t>& score, std::size_t n);

#if GSHARD_HAS_BODIES

GSHARD_INLINE std::vector<int> best_assignment(const std::vector<std::int64_t>& score, std::size_t n) {
  constexpr std::int64_t large = std::numeric_limits<std::int64_t>::max() / 4;
  std::vector<std::int64_t> of_row(n + 1, 0), of_column(n + 1, 0);  // potentials
  std::vector<std::size_t> row(n + 1, 0), before(n + 1, 0);         // by column, from 1; 0: none
  for (std::size_t r = 1; r <= n; ++r) {
    row[0] = r;
    std::vector<std::int64_t> slack(n + 1, large);
    std::vector<char> reached(n + 1, 0);
    std::size_t at = 0;
    do {
      reached[at] = 1;
      std::int64_t step = large;
      std::size_t next = 0;
      for (std::size_t c = 1; c <= n; ++c) {
        if (reached[c]) continue;
        const std::int64_t cost = -score[(row[at] - 1) * n + c - 1] - of_row[row[at]] - of_column[c];
        if (cost < slack[c]) {
          slack[c] = cost;
          before[c] = at;
        }
        if (slack[c] < step) {
          step = slack[c];
          next = c;
        }
      }
      for (std::size_t c = 0; c <= n; ++c) {
        if (reached[c]) {
          of_row[row[c]] += step;
          of_column[c] -= step;
        } else {
          slack[c] -= step;
        }
      }
      at = next;
    } while (row[at] != 0);
    for (; at != 0; at = before[at]) row[at] = row[before[at]];
  }
  std::vector<int> to(n, 0);
  for (std::size_t c = 1; c <= n; ++c) to[row[c] - 1] = int(c - 1);
  return to;
}

/// Experts in the slots of devices. The replicas of an expert share its load equally.
class expert_packing {
 public:
  /// The greedy algorithm over nodes. Each node gets the same number of experts, with about the same total load, and replicates only its
  /// own. `nodes` divides the experts and the devices; 1: any device may have any replica. The slots of device d are
  /// [d * slots, (d + 1) * slots).
  expert_packing(std::span<const double> load, const expert_devices& on, std::size_t nodes)
      : load_(load), on_(on), expert_(std::size_t(on.replicas()), 0), replicas_(load.size(), 1), device_load_(std::size_t(on.devices), 0) {
    const std::vector<std::size_t> node = pack_greedily({load.begin(), load.end()}, nodes, load.size() / nodes);
    const std::size_t devices = device_load_.size() / nodes;
    for (std::size_t n = 0; n < nodes; ++n) {
      std::vector<int> experts;
      for (std::size_t e = 0; e < load.size(); ++e)
        if (node[e] == n) experts.push_back(int(e));
      fill_greedily(experts, n * devices, devices);
    }
    add_up();
  }

  const std::vector<int>& experts() const { return expert_; }
  double max_load() const { return *std::ranges::max_element(device_load_); }

  /// Exchanges replicas, and gives slots to other experts, while that lowers the load of the busiest device.
  void improve(double enough) {
    for (std::size_t step = 0; step < 8 * expert_.size() && max_load() > enough; ++step)
      if (!exchange() && !replicate()) return;
  }
  /// Exchanges two random replicas, and gives a random slot to another expert.
  void shake(std::uint64_t number) {
    const auto words = random_words({}, number);
    const auto pick = [&](std::size_t word, std::size_t n) { return (std::uint64_t(words[word]) * n) >> 32; };
    std::swap(expert_[busiest() * slots() + pick(0, slots())], expert_[pick(1, expert_.size())]);
    if (const std::size_t s = pick(2, expert_.size()); replicas_[std::size_t(expert_[s])] > 1) give(s, int(pick(3, load_.size())));
    add_up();
  }

 private:
  std::span<const double> load_;
  expert_devices on_;
  std::vector<int> expert_;    // by slot
  std::vector<int> replicas_;  // by expert
  std::vector<double> device_load_;

  std::size_t slots() const { return std::size_t(on_.slots); }
  double share(std::size_t e) const { return load_[e] / double(replicas_[e]); }
  double load_of_slot(std::size_t s) const { return share(std::size_t(expert_[s])); }
  std::size_t busiest() const { return std::size_t(std::ranges::max_element(device_load_) - device_load_.begin()); }
  void add_up() {
    for (std::size_t d = 0; d < device_load_.size(); ++d) {
      device_load_[d] = 0;
      for (std::size_t s = d * slots(); s < (d + 1) * slots(); ++s) device_load_[d] += load_of_slot(s);
    }
  }
  void give(std::size_t s, int e) {
    --replicas_[std::size_t(expert_[s])];
    ++replicas_[std::size_t(e)];
    expert_[s] = e;
  }

  /// The greedy algorithm for some experts and successive devices. Each further replica goes to the expert whose replicas are hottest. Then
  /// the replicas, hottest first, each go to the coolest device with a free slot.
  void fill_greedily(const std::vector<int>& experts, std::size_t first, std::size_t devices) {
    const auto is_hotter = [&](int a, int b) {
      const auto x = std::size_t(a), y = std::size_t(b);
      const bool is_everywhere[]{replicas_[x] >= int(devices), replicas_[y] >= int(devices)};
      if (is_everywhere[0] != is_everywhere[1]) return is_everywhere[1];
      return share(x) != share(y) ? share(x) > share(y) : replicas_[x] < replicas_[y];
    };
    for (std::size_t used = experts.size(); used < devices * slots(); ++used) {
      int hottest = experts[0];
      for (const int e : experts)
        if (is_hotter(e, hottest)) hottest = e;
      ++replicas_[std::size_t(hottest)];
    }
    std::vector<int> order;  // an entry per replica
    std::vector<double> load;
    for (const int e : experts) order.insert(order.end(), std::size_t(replicas_[std::size_t(e)]), e);
    for (const int e : order) load.push_back(share(std::size_t(e)));
    const std::vector<std::size_t> device = pack_greedily(load, devices, slots());
    std::vector<std::size_t> used(devices, 0);
    for (std::size_t i = 0; i < order.size(); ++i) expert_[(first + device[i]) * slots() + used[device[i]]++] = order[i];
  }
  /// The bin of each item. Places the largest item first, each into the bin with the smallest sum among those with room.
  static std::vector<std::size_t> pack_greedily(const std::vector<double>& item, std::size_t bins, std::size_t room) {
    std::vector<std::size_t> order(item.size()), used(bins, 0), bin(item.size(), 0);
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return item[a] > item[b]; });
    std::vector<double> sum(bins, 0);
    for (const std::size_t i : order) {
      std::size_t best = bins;
      for (std::size_t b = 0; b < bins; ++b)
        if (used[b] < room && (best == bins || sum[b] < sum[best])) best = b;
      bin[i] = best;
      ++used[best];
      sum[best] += item[i];
    }
    return bin;
  }

  /// Exchanges one or two replicas of the busiest device for as many of another device, to minimize the larger load of the two devices.
  bool exchange() {
    const std::size_t d = busiest(), first = d * slots(), last = first + slots();
    double best = below(device_load_[d]);
    std::vector<std::pair<std::size_t, std::size_t>> moves;
    const auto lowers = [&](std::size_t other, double moved) {
      const double after = std::max(device_load_[d] - moved, device_load_[other] + moved);
      if (moved <= 0 || after >= best) return false;
      best = after;
      return true;
    };
    for (std::size_t other = 0; other < device_load_.size(); ++other) {
      if ((device_load_[d] + device_load_[other]) / 2 >= best) continue;
      const std::size_t theirs = other * slots();
      for (std::size_t i = first; i < last; ++i)
        for (std::size_t j = theirs; j < theirs + slots(); ++j)
          if (lowers(other, load_of_slot(i) - load_of_slot(j))) moves = {{i, j}};
      if (slots() > most_slots_for_pairs) continue;
      for (std::size_t i = first; i < last; ++i)
        for (std::size_t k = i + 1; k < last; ++k)
          for (std::size_t j = theirs; j < theirs + slots(); ++j)
            for (std::size_t l = j + 1; l < theirs + slots(); ++l)
              if (lowers(other, load_of_slot(i) + load_of_slot(k) - load_of_slot(j) - load_of_slot(l))) moves = {{i, j}, {k, l}};
    }
    for (const auto& [i, j] : moves) std::swap(expert_[i], expert_[j]);
    add_up();
    return !moves.empty();
  }
  static constexpr std::size_t most_slots_for_pairs = 12;

  /// Gives a slot of an expert with several replicas to an expert of the busiest device.
  bool replicate() {
    const std::size_t first = busiest() * slots();
    double best = below(max_load());
    std::size_t slot = 0;
    int expert = -1;
    std::vector<std::vector<std::size_t>> devices(load_.size());  // by expert, one for each replica
    for (std::size_t s = 0; s < expert_.size(); ++s) devices[std::size_t(expert_[s])].push_back(s / slots());
    std::vector<double> after;
    for (std::size_t i = first; i < first + slots(); ++i)
      for (std::size_t s = 0; s < expert_.size(); ++s) {
        const auto to = std::size_t(expert_[i]), donor = std::size_t(expert_[s]);
        if (donor == to || replicas_[donor] < 2) continue;
        const double less = load_[to] / (replicas_[to] + 1), more = load_[donor] / (replicas_[donor] - 1);
        after = device_load_;
        for (const std::size_t d : devices[to]) after[d] += less - share(to);
        for (const std::size_t d : devices[donor]) after[d] += more - share(donor);
        after[s / slots()] += less - more;
        if (const double most = *std::ranges::max_element(after); most < best) {
          best = most;
          slot = s;
          expert = int(to);
        }
      }
    if (expert >= 0) give(slot, expert);
    add_up();
    return expert >= 0;
  }
  /// A load that is lower by more than rounding.
  static double below(double load) { return load * (1 - 1e-12); }
};

#endif

}  // namespace detail
}}  // namespace gshard::v0
