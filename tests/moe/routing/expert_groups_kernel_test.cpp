// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/moe/routing/expert_groups_kernel.hpp>

#include "../../exec/kernel/gating_reference.hpp"
#include "../../exec/kernel/support.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace {

using namespace gating_reference;

struct grouped_case {
  random_case gating;
  ks::expert_group_sizes n;
  std::vector<std::int32_t> slot, row, group_slot;
  std::vector<double> weight, group_weight, overflow;
};

/// A random gating, and its routing by 1 to E expert groups. `all_rows`: no choice is dropped.
grouped_case make_grouped(std::uint32_t seed, bool all_rows) {
  grouped_case r{make_case(seed), {}, {}, {}, {}, {}, {}, {}};
  random_case& c = r.gating;
  c.n.choices = 1 + seed % 5;
  c.random = false;
  r.slot.resize(at(c.n.groups * c.n.tokens * c.n.choices));
  r.weight.resize(r.slot.size());
  ks::top_k_gating<double>(c.gates.data(), c.mask.data(), r.slot.data(), r.weight.data(), nullptr, nullptr, nullptr, nullptr, c.n, false,
                           c.key, c.group_offset);
  std::mt19937 gen(seed);
  r.n = {c.n, test::pick(gen, 1, c.n.experts), all_rows ? c.n.tokens : test::pick(gen, 1, c.n.tokens)};
  r.n.gating.experts = (c.n.experts + r.n.expert_groups - 1) / r.n.expert_groups;
  r.row.assign(at(c.n.groups * c.n.tokens * r.n.expert_groups), 7);
  r.group_slot.assign(at(r.n.expert_groups * c.n.groups * r.n.rows * c.n.choices), 7);
  r.group_weight.assign(r.group_slot.size(), 7);
  r.overflow.assign(at(c.n.groups), 7);
  ks::expert_group_slots(r.slot.data(), r.weight.data(), r.row.data(), r.group_slot.data(), r.group_weight.data(), r.overflow.data(), r.n);
  return r;
}

/// The weight of every token and slot of all experts, from slots and weights of the gating. Choices whose token has no row in the group are
/// left out.
std::vector<double> direct_weights(const grouped_case& r) {
  const auto [G, S, E, C, K] = r.gating.n;
  std::vector<double> dense(at(G * S * E * C));
  for (std::size_t i = 0; i < r.slot.size(); ++i)
    if (r.slot[i] >= 0 && r.row[i / at(K) * at(r.n.expert_groups) + at(r.slot[i] / r.n.slots())] >= 0)
      dense[i / at(K) * at(E * C) + at(r.slot[i])] = r.weight[i];
  return dense;
}
/// The same weights through rows.
std::vector<double> weights_by_rows(const grouped_case& r) {
  const auto [G, S, E, C, K] = r.gating.n;
  std::vector<double> dense(at(G * S * E * C));
  for (std::size_t i = 0; i < r.row.size(); ++i) {
    if (r.row[i] < 0) continue;
    const auto token = std::int64_t(i) / r.n.expert_groups, n = std::int64_t(i) % r.n.expert_groups;
    REQUIRE(r.row[i] / r.n.rows == n);
    for (std::int64_t k = 0; k < K; ++k) {
      const std::size_t from = at(r.n.entry(n, token / S, r.row[i] % r.n.rows) + k);
      if (r.group_slot[from] < 0) continue;
      REQUIRE(r.group_slot[from] < r.n.slots());
      dense[at(token * E * C + n * r.n.slots() + r.group_slot[from])] = r.group_weight[from];
    }
  }
  return dense;
}

}  // namespace

TEST_CASE("expert_group_slots: rows lead to the slots and weights of the gating") {
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    const grouped_case r = make_grouped(seed, seed % 2 == 0);
    CHECK(weights_by_rows(r) == direct_weights(r));
    // Each row has at most one token, and unused rows have none.
    std::vector<int> tokens_of_row(at(r.gating.n.groups * r.n.expert_groups * r.n.rows), 0);
    for (std::size_t i = 0; i < r.row.size(); ++i)
      if (r.row[i] >= 0) {
        const auto g = std::int64_t(i) / r.n.expert_groups / r.gating.n.tokens;
        ++tokens_of_row[at(r.n.entry(r.row[i] / r.n.rows, g, r.row[i] % r.n.rows) / r.gating.n.choices)];
      }
    CHECK(std::all_of(tokens_of_row.begin(), tokens_of_row.end(), [](int n) { return n <= 1; }));
    for (std::size_t i = 0; i < r.group_slot.size(); ++i)
      if (tokens_of_row[i / at(r.gating.n.choices)] == 0) CHECK((r.group_slot[i] == -1 && r.group_weight[i] == 0));
  }
}

TEST_CASE("expert_group_slots: with a row for every token no choice is lost, else the lost ones are counted") {
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    for (const bool all_rows : {true, false}) {
      const grouped_case r = make_grouped(seed, all_rows);
      const auto [G, S, E, C, K] = r.gating.n;
      for (std::int64_t g = 0; g < G; ++g) {
        const auto kept = [&](const std::vector<std::int32_t>& v, std::int64_t first, std::int64_t count) {
          return std::count_if(v.begin() + first, v.begin() + first + count, [](std::int32_t i) { return i >= 0; });
        };
        std::int64_t arrived = 0;
        for (std::int64_t n = 0; n < r.n.expert_groups; ++n) arrived += kept(r.group_slot, r.n.entry(n, g, 0), r.n.rows * K);
        CHECK(r.overflow[at(g)] == double(kept(r.slot, g * S * K, S * K) - arrived));
        if (all_rows) CHECK(r.overflow[at(g)] == 0);
      }
    }
  }
}

TEST_CASE("expert_group_slots_grad: the transpose of the way of the weights") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    const grouped_case r = make_grouped(seed, seed % 2 == 0);
    std::mt19937 gen(seed);
    const auto d = test::random_values(std::int64_t(r.group_weight.size()), gen);
    std::vector<double> dweight(r.weight.size(), 7);
    ks::expert_group_slots_grad(r.slot.data(), r.row.data(), d.data(), dweight.data(), r.n);
    double there = 0, back = 0;
    for (std::size_t i = 0; i < d.size(); ++i) there += d[i] * r.group_weight[i];
    for (std::size_t i = 0; i < dweight.size(); ++i) back += dweight[i] * r.weight[i];
    CHECK(there == doctest::Approx(back));
    for (std::size_t i = 0; i < dweight.size(); ++i)
      if (r.slot[i] < 0) CHECK(dweight[i] == 0);
  }
}
