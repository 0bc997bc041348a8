// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/run/routing_workload.hpp>

#include <gshard/moe/placement/expert_placement.hpp>
#include <gshard/moe/routing/gating_kernel.hpp>
#include <gshard/plan.hpp>
#include <gshard/sim/run/dry_run.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace gs = gshard;
using gs::routing_workload, gs::workload;

namespace {

routing_workload of(workload what, std::uint64_t seed = 3) {
  return {.what = what, .seed = seed, .experts = 16, .ranks = 4, .sources = 4, .tokens = 512, .k = 2};
}
/// The number of choices of the experts on each rank.
std::vector<std::int64_t> rank_loads(const routing_workload& w, std::uint32_t step) {
  std::vector<std::int64_t> sums(std::size_t(w.ranks), 0);
  const std::vector<std::int64_t> load = w.loads(step);
  for (std::size_t e = 0; e < load.size(); ++e) sums[e * sums.size() / load.size()] += load[e];
  return sums;
}
template <class List>
double max_over_mean(const List& x) {
  return double(*std::max_element(x.begin(), x.end())) * double(x.size()) / double(std::accumulate(x.begin(), x.end(), std::int64_t(0)));
}
std::ptrdiff_t hottest(const std::vector<std::int64_t>& x) { return std::max_element(x.begin(), x.end()) - x.begin(); }

}  // namespace

static_assert(routing_workload{.what = workload::hot_rank, .tokens = 16}.loads(0).size() == 8);  // a constant expression

TEST_CASE("every token chooses k different experts, a function of workload, seed and step") {
  for (const workload what : gs::all_workloads)
    for (const int experts : {2, 7, 16})
      for (const int k : {1, 2, std::min(experts, 8)}) {
        const routing_workload w{.what = what, .seed = 9, .experts = experts, .ranks = std::min(experts, 3), .tokens = 32, .k = k};
        const routing_workload again = w;
        std::vector<int> chosen(std::size_t(k), 0), same(chosen.size(), 0);
        for (std::int64_t t = 0; t < w.tokens; ++t) {
          w.choose(13, 1, t, chosen);
          again.choose(13, 1, t, same);
          CHECK(chosen == same);
          CHECK(std::set<int>(chosen.begin(), chosen.end()).size() == chosen.size());
          CHECK((*std::min_element(chosen.begin(), chosen.end()) >= 0 && *std::max_element(chosen.begin(), chosen.end()) < experts));
        }
      }
  CHECK(of(workload::hot_rank, 1).loads(0) != of(workload::hot_rank, 2).loads(0));
  CHECK(of(workload::hot_rank).loads(0) != of(workload::hot_rank).loads(1));
}

TEST_CASE("each workload has its imbalance") {
  CHECK(max_over_mean(of(workload::balanced).loads(5)) == 1);
  const routing_workload set = of(workload::hot_expert_set), rank = of(workload::hot_rank), spread = of(workload::spread_heat);
  CHECK(max_over_mean(set.loads(0)) > 3);
  CHECK(max_over_mean(rank_loads(rank, 0)) > 1.8);
  CHECK(max_over_mean(rank.loads(0)) > 1.5);
  CHECK(max_over_mean(spread.loads(0)) > 1.5);  // as hot as W2,
  CHECK(max_over_mean(rank_loads(spread, 0)) < 1.2);  // but spread over the ranks
  for (std::uint32_t step = 1; step < 4; ++step) CHECK(hottest(rank_loads(rank, step)) == hottest(rank_loads(rank, 0)));
}

TEST_CASE("sources of W4 are ragged") {
  const routing_workload w = of(workload::ragged_sources);
  std::vector<std::int64_t> real(4, 0);
  for (int source = 0; source < 4; ++source)
    for (std::int64_t t = 0; t < w.tokens; ++t) real[std::size_t(source)] += w.is_real(source, t);
  std::sort(real.begin(), real.end());
  CHECK(real == std::vector<std::int64_t>{128, 256, 384, 512});
  const std::vector<std::int64_t> load = w.loads(0);
  CHECK(std::accumulate(load.begin(), load.end(), std::int64_t(0)) == 2 * 1280);
  const std::vector<float> mask = w.mask();
  CHECK(std::accumulate(mask.begin(), mask.end(), 0.0f) == 1280);
}

TEST_CASE("W5 leaves a rank without load, and one expert of each other rank") {
  const std::vector<std::int64_t> load = of(workload::zero_load).loads(0);
  CHECK(std::count(load.begin(), load.end(), 0) == 4 + 3);
  std::vector<std::int64_t> sums = rank_loads(of(workload::zero_load), 0);
  CHECK(std::count(sums.begin(), sums.end(), 0) == 1);
}

TEST_CASE("W6 moves in every step, W7 in bursts") {
  const routing_workload rotating = of(workload::rotating_hotspot), burst = of(workload::burst);
  for (std::uint32_t step = 0; step < 8; ++step)
    CHECK(hottest(rank_loads(rotating, step + 1)) == (hottest(rank_loads(rotating, step)) + 1) % 4);
  for (std::uint32_t step = 0; step < 2 * routing_workload::burst_period; ++step)
    CHECK((max_over_mean(rank_loads(burst, step)) > 1.8) == (step % 16 >= 12));
}

TEST_CASE("gating of the logits makes the choices") {
  for (const workload what : gs::all_workloads) {
    routing_workload w = of(what);
    w.tokens = 64;
    w.k = 3;
    std::vector<float> gates = w.logits(2);
    for (float& x : gates) x = std::exp(x);
    for (std::size_t row = 0; row < gates.size(); row += 16) {
      const float sum = std::accumulate(gates.begin() + std::ptrdiff_t(row), gates.begin() + std::ptrdiff_t(row + 16), 0.0f);
      for (std::size_t e = 0; e < 16; ++e) gates[row + e] /= sum;
    }
    const std::vector<float> mask = w.mask();
    const gs::kernel::gating_sizes sizes{.groups = 4, .tokens = 64, .experts = 16, .capacity = 64, .choices = 3};
    std::vector<std::int32_t> slot(4 * 64 * 3);
    std::vector<float> weight(slot.size());
    gs::kernel::top_k_gating<float>(gates.data(), mask.data(), slot.data(), weight.data(), nullptr, nullptr, nullptr, nullptr, sizes, false, {}, 0);
    std::vector<int> chosen(3, 0);
    for (int source = 0; source < 4; ++source)
      for (std::int64_t t = 0; t < 64 && w.is_real(source, t); ++t) {
        w.choose(2, source, t, chosen);
        for (std::size_t j = 0; j < 3; ++j) CHECK(slot[std::size_t(source * 64 + t) * 3 + j] / 64 == chosen[j]);
      }
  }
}

TEST_CASE("dry runs of all workloads: experts that are placed by their load take as long as those of an even load") {
  static constexpr auto layer = [](auto& m, auto x, auto gates) {
    const auto route = gs::top_k_gating(gates, {.k = 2, .slots = {16}});  // a slot for every token
    const auto wi = m.param("wi", "EMF", gs::P<"x", gs::none, gs::none>{}, gs::init::fan_in("M"));
    return gs::einsum<"EGCM,EMF->EGCF">(gs::einsum<"GSEC,GSM->EGCM">(route.dispatch, x), wi);
  };
  using tokens = gs::P<"x", gs::none, gs::none>;
  using experts = gs::program<layer, gs::mesh<gs::axis<"x">>, gs::in<"GSM", tokens>, gs::in<"GSE", tokens>>;
  constexpr double places = 4 * 512;  // slots per expert
  constexpr gs::machine on{1e9, 1e12, 1e12, 0};  // arithmetic takes all of the time
  const auto bound = experts::plan.bind({{'G', 4}, {'S', 512}, {'M', 512}, {'E', 16}, {'F', 512}}, std::array{4});
  const auto seconds = [&](double filled) {
    gs::dry_run_options options;
    options.share.filled_slots = filled;
    return gs::dry_run(experts::plan, bound, on, on, options).seconds;
  };
  const gs::expert_devices without{4, 4, 1}, with_replicas{4, 6, 1};
  for (const workload what : gs::all_workloads) {
    CAPTURE(std::string(name(what)));
    const std::vector<std::int64_t> counts = of(what).loads(13);
    const std::vector<double> load(counts.begin(), counts.end());
    const double all = std::accumulate(load.begin(), load.end(), 0.0);
    const auto even = gs::expert_placement::even(16, without);
    // Slots are compared by the choices in them. Each of 6 replicas has 4 / 6 of an expert's slots.
    const double before = seconds(even.filled_slots(load, places));
    const double after = seconds(gs::expert_placement(load, with_replicas).filled_slots(load, places * 4 / 6));
    const double least = seconds(all / (16 * places));
    CHECK(before / least == doctest::Approx(even.imbalance(load)).epsilon(0.01));
    CHECK(after / least < 1.05);
    if (what == workload::hot_rank || what == workload::rotating_hotspot || what == workload::hot_expert_set) CHECK(before / after > 1.5);
  }
  CHECK(gs::expert_placement::even(16, without).filled_slots(std::vector<double>(16, 2 * places), places) == 1);  // some are refused
  CHECK_THROWS_AS(gs::expert_placement::even(16, without).filled_slots(std::vector<double>(16, 1.0), 0), gs::error);
}
