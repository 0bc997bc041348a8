// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/moe/placement/expert_placement.hpp>

#include <gshard/core/base/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "../../complaint.hpp"

namespace gs = gshard;
using gs::expert_devices, gs::expert_placement;

namespace {

struct random_numbers {
  gs::random_key key;
  std::uint64_t at = 0;

  double uniform() { return double(gs::uniform01(key, at++)); }
  int below(int n) { return int(uniform() * n); }
};

struct load_case {
  std::vector<double> load;
  expert_devices on;
};
/// Uniform, Zipf, log-normal-like, and a few hot experts, on 2 to 64 devices of 1 to 8 nodes.
load_case random_case(std::uint32_t number) {
  random_numbers r{{5, number, 1}};
  load_case c;
  c.on.nodes = 1 << r.below(4);
  c.on.devices = std::clamp(c.on.nodes << r.below(4), 2 * c.on.nodes, 64);
  const int per_device = 1 + r.below(4), experts = std::max(per_device * c.on.devices, 8);
  c.on.slots = experts / c.on.devices + r.below(3);
  const int shape = r.below(4);
  for (int e = 0; e < experts; ++e) {
    const double x = r.uniform();
    double load = 1 + 1000 * x;
    if (shape == 1) load = 1 + 10000.0 / (1 + e);
    if (shape == 2) load = 1 + 100 * std::exp(3 * x + 1.5 * r.uniform() - 2);
    if (shape == 3) load = 1 + 100 * x + (r.uniform() < 0.1 ? 2000 * r.uniform() : 0);
    c.load.push_back(std::floor(load));
  }
  for (int e = experts - 1; e > 0; --e) std::swap(c.load[std::size_t(e)], c.load[std::size_t(r.below(e + 1))]);
  return c;
}

double largest(const std::vector<double>& x) { return *std::max_element(x.begin(), x.end()); }

/// Puts the items, largest first, each into the bin with the smallest sum that has room.
std::vector<std::vector<std::size_t>> pack(const std::vector<double>& item, std::size_t bins, std::size_t room) {
  std::vector<std::size_t> order(item.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return item[a] > item[b]; });
  std::vector<std::vector<std::size_t>> in(bins);
  std::vector<double> sum(bins, 0);
  for (const std::size_t i : order) {
    std::size_t best = bins;
    for (std::size_t b = 0; b < bins; ++b)
      if (in[b].size() < room && (best == bins || sum[b] < sum[best])) best = b;
    in[best].push_back(i);
    sum[best] += item[i];
  }
  return in;
}
/// The load of the busiest device in the greedy algorithm: each node gets equally many experts. In each node the hottest ones are
/// replicated, and then placed, largest first.
double greedy_over_nodes(const load_case& c, int nodes) {
  const auto n = std::size_t(nodes), devices = std::size_t(c.on.devices) / n, slots = std::size_t(c.on.slots);
  double most = 0;
  for (const auto& node : pack(c.load, n, c.load.size() / n)) {
    std::vector<int> replicas(node.size(), 1);
    const auto share = [&](std::size_t i) { return c.load[node[i]] / replicas[i]; };
    for (std::size_t used = node.size(); used < devices * slots; ++used) {
      std::size_t hottest = 0;
      for (std::size_t i = 1; i < node.size(); ++i)
        if (share(i) > share(hottest)) hottest = i;
      ++replicas[hottest];
    }
    std::vector<double> items;
    for (std::size_t i = 0; i < node.size(); ++i) items.insert(items.end(), std::size_t(replicas[i]), share(i));
    for (const auto& device : pack(items, devices, slots)) {
      double sum = 0;
      for (const std::size_t i : device) sum += items[i];
      most = std::max(most, sum);
    }
  }
  return most;
}

bool has_all_experts(const expert_placement& p) {
  for (int e = 0; e < p.experts(); ++e)
    if (p.replicas(e) < 1) return false;
  return p.expert().size() == std::size_t(p.on().replicas());
}

/// The load of the busiest device in the best of all placements.
double best_of_all(const std::vector<double>& load, const expert_devices& on) {
  const int experts = int(load.size());
  std::vector<int> expert(std::size_t(on.replicas()), 0);
  double best = 1e300;
  for (;;) {
    bool complete = true;
    for (int e = 0; e < experts; ++e) complete = complete && std::find(expert.begin(), expert.end(), e) != expert.end();
    if (complete) best = std::min(best, largest(expert_placement::of(expert, experts, on).device_loads(load)));
    std::size_t s = 0;
    while (s < expert.size() && ++expert[s] == experts) expert[s++] = 0;
    if (s == expert.size()) return best;
  }
}

}  // namespace

TEST_CASE("1,000 random loads: never busier than the greedy algorithm, and within 3 % of a lower bound on average") {
  double ratios = 0;
  int busier = 0;
  constexpr std::uint32_t cases = 1000;
  for (std::uint32_t i = 0; i < cases; ++i) {
    const load_case c = random_case(i);
    const expert_placement p(c.load, c.on);
    REQUIRE(has_all_experts(p));
    const double most = largest(p.device_loads(c.load)), bound = gs::least_device_load(c.load, c.on);
    REQUIRE(most >= bound * (1 - 1e-12));
    busier += most > greedy_over_nodes(c, 1) * (1 + 1e-12);
    busier += int(c.load.size()) % c.on.nodes == 0 && most > greedy_over_nodes(c, c.on.nodes) * (1 + 1e-12);
    ratios += most / bound;
  }
  CHECK(busier == 0);
  MESSAGE("busiest device over the lower bound, on average: ", ratios / cases);
  CHECK(ratios / cases <= 1.03);
}

TEST_CASE("the lower bound holds, and small placements are near the best of all") {
  int best = 0, cases = 0;
  for (std::uint32_t i = 0; i < 60; ++i) {
    random_numbers r{{6, i, 1}};
    const expert_devices on{2 + r.below(2), 1 + r.below(3)};
    if (on.replicas() > 6) continue;
    std::vector<double> load(std::size_t(1 + r.below(std::min(on.replicas(), 5))));
    for (double& x : load) x = std::floor(100 * r.uniform() * r.uniform()) + 1;
    const double least = best_of_all(load, on), bound = gs::least_device_load(load, on);
    CHECK(bound <= least * (1 + 1e-12));
    ++cases;
    best += largest(expert_placement(load, on).device_loads(load)) <= least * (1 + 1e-9);
  }
  CHECK(cases > 40);
  CHECK(best >= cases - 2);
}

TEST_CASE("a hot expert is replicated, and replicas share its load") {
  const std::vector<double> load{80, 10, 10, 10, 10, 10, 10, 20};
  const expert_placement p(load, {.devices = 4, .slots = 3});
  CHECK(p.replicas(0) >= 3);
  CHECK(p.imbalance(load) < 1.1);
  CHECK(expert_placement::even(8, {.devices = 4, .slots = 2}).imbalance(load) == doctest::Approx(90 * 4 / 160.0));
  CHECK(expert_placement::even(8, {4, 3}).expert() == std::vector{0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7});
  CHECK(p == expert_placement(load, {.devices = 4, .slots = 3}));
  const std::vector<double> nothing(8, 0.0);
  CHECK(has_all_experts(expert_placement(nothing, {4, 3})));
  CHECK(expert_placement(nothing, {4, 3}).imbalance(nothing) == 1);
}

TEST_CASE("replicas of an expert are on few nodes") {
  const std::vector<double> load{40, 40, 1, 1};  // each hot expert on half of the devices
  const expert_placement p(load, {.devices = 4, .slots = 2, .nodes = 2});
  int pairs = 0;
  for (const int e : {0, 1})
    for (std::size_t node = 0; node < 2; ++node)
      pairs += std::find(p.expert().begin() + std::ptrdiff_t(4 * node), p.expert().begin() + std::ptrdiff_t(4 * node + 4), e) !=
               p.expert().begin() + std::ptrdiff_t(4 * node + 4);
  CHECK(pairs == 2);
}

TEST_CASE("a placement close to the one before keeps its loads and moves few replicas") {
  int moved = 0, moved_closest = 0;
  for (std::uint32_t i = 0; i < 100; ++i) {
    load_case c = random_case(i);
    const expert_placement before(c.load, c.on);
    CHECK(before.moved_from(before) == 0);
    CHECK(before.closest_to(before) == before);
    random_numbers r{{7, i, 1}};
    for (double& x : c.load) x = std::floor(x * (0.8 + 0.4 * r.uniform()));
    const expert_placement now(c.load, c.on), closest = now.closest_to(before);
    REQUIRE(has_all_experts(closest));
    std::vector<double> loads = now.device_loads(c.load), same = closest.device_loads(c.load);
    std::sort(loads.begin(), loads.end());
    std::sort(same.begin(), same.end());
    for (std::size_t d = 0; d < loads.size(); ++d) CHECK(loads[d] == doctest::Approx(same[d]));
    moved += now.moved_from(before);
    moved_closest += closest.moved_from(before);
    const auto slots = std::size_t(c.on.slots);
    for (std::size_t s = 0; s < closest.expert().size(); ++s) {  // a replica that stays on its device stays in its slot
      const auto first = closest.expert().begin() + std::ptrdiff_t(s / slots * slots);
      const bool stays = std::count(first, first + c.on.slots, before.expert()[s]) >=
                         std::count(before.expert().begin() + std::ptrdiff_t(s / slots * slots),
                                    before.expert().begin() + std::ptrdiff_t(s / slots * slots) + c.on.slots, before.expert()[s]);
      if (stays) CHECK(closest.expert()[s] == before.expert()[s]);
    }
  }
  CHECK(moved_closest < moved);
}

TEST_CASE("errors") {
  const std::vector<double> load{1, 2, 3};
  CHECK(complaint([&] { expert_placement(load, {1, 2}); }) == "expert_placement: 3 experts for 2 slots");
  CHECK(complaint([&] { expert_placement(load, {.devices = 4, .slots = 1, .nodes = 3}); }) ==
        "expert_placement: 4 devices with 1 slots each on 3 nodes");
  CHECK(contains(complaint([&] { expert_placement(std::vector{1.0, -1.0}, {2, 1}); }), "the load of expert 1 is -1"));
  CHECK(contains(complaint([&] { expert_placement(std::vector{1.0, std::nan("")}, {2, 1}); }), "the load of expert 1 is"));
  CHECK(complaint([&] { expert_placement::of({0, 0}, 2, {2, 1}); }) == "expert_placement: expert 1 has no slot");
  CHECK(complaint([&] { expert_placement::of({0, 2}, 2, {2, 1}); }) == "expert_placement: expert 2 of 2");
  CHECK(complaint([&] { expert_placement::of({0}, 2, {2, 1}); }) == "expert_placement: 1 experts for 2 slots");
  CHECK(complaint([&] { (void)expert_placement(load, {3, 1}).imbalance(std::vector{1.0}); }) ==
        "expert_placement: loads of 1 experts, placed are 3");
  CHECK(complaint([&] { (void)expert_placement(load, {3, 1}).closest_to(expert_placement(load, {3, 2})); }) ==
        "expert_placement: 3 experts on 3 devices of 1 nodes, with 1 slots each, but before it was one of 3 experts on 3 devices of 1 nodes, "
        "with 2 slots each");
}
