// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/moe/routing/grouped_product_kernel.hpp>

#include "../../exec/kernel/gating_reference.hpp"
#include "../../exec/kernel/support.hpp"

#include "../../complaint.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace {

using namespace gating_reference;

struct routed {
  ks::expert_group_sizes n;
  std::vector<std::int32_t> slot, row, count;
  std::vector<double> overflow;
};

/// Random choices of experts; some choose none. `all_rows`: no choice is dropped.
routed make_routed(std::uint32_t seed, bool all_rows) {
  std::mt19937 gen(seed);
  routed r;
  r.n.gating = {test::pick(gen, 0, 3), test::pick(gen, 0, 9), test::pick(gen, 1, 4), test::pick(gen, 1, 5), test::pick(gen, 1, 4)};
  r.n.expert_groups = test::pick(gen, 1, 4);
  const auto& n = r.n.gating;  // experts: of one group
  r.n.rows = all_rows ? n.tokens * n.choices : test::pick(gen, 0, n.tokens * n.choices);
  r.slot.resize(at(n.groups * n.tokens * n.choices));
  for (std::int32_t& slot : r.slot)
    slot = test::pick(gen, 0, 4) == 0 ? -1 : std::int32_t(test::pick(gen, 0, r.n.expert_groups * n.experts * n.capacity - 1));
  r.row.assign(r.slot.size(), 7);
  r.count.assign(at(r.n.expert_groups * n.groups * n.experts), 7);
  r.overflow.assign(at(n.groups), 7);
  ks::expert_rows(r.slot.data(), r.row.data(), r.count.data(), r.overflow.data(), r.n);
  return r;
}

}  // namespace

TEST_CASE("expert_rows: rows are sorted by expert, then by token and choice, and counted") {
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    const routed r = make_routed(seed, seed % 2 == 0);
    const auto [G, S, E, C, K] = r.n.gating;
    for (std::int64_t g = 0; g < G; ++g)
      for (std::int64_t n = 0; n < r.n.expert_groups; ++n) {
        std::int32_t next = std::int32_t(n * r.n.rows);
        for (std::int64_t e = 0; e < E; ++e) {
          const std::int32_t first = next;
          for (std::int64_t i = g * S * K; i < (g + 1) * S * K; ++i)
            if (r.row[at(i)] >= 0 && r.slot[at(i)] / C == n * E + e) CHECK(r.row[at(i)] == next++);
          CHECK(r.count[at((n * G + g) * E + e)] == next - first);
        }
        CHECK(next - n * r.n.rows <= r.n.rows);
      }
  }
}

TEST_CASE("expert_rows: first choices take rows before second ones, in the order of tokens; the rest is counted") {
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    const routed r = make_routed(seed, seed % 4 == 0);
    const auto [G, S, E, C, K] = r.n.gating;
    for (std::int64_t g = 0; g < G; ++g) {
      std::vector<std::int64_t> used(at(r.n.expert_groups), 0);
      double refused = 0;
      for (std::int64_t k = 0; k < K; ++k)
        for (std::int64_t s = 0; s < S; ++s) {
          const std::size_t i = at((g * S + s) * K + k);
          const bool chosen = r.slot[i] >= 0, kept = chosen && used[at(r.slot[i] / C / E)]++ < r.n.rows;
          CHECK((r.row[i] >= 0) == kept);
          refused += chosen && !kept ? 1 : 0;
        }
      CHECK(r.overflow[at(g)] == refused);
      if (seed % 4 == 0) CHECK(refused == 0);
    }
  }
}

TEST_CASE("expert_rows: more rows than an int32 can number are refused") {
  ks::expert_group_sizes n{{0, 0, 1, 1, 1}, 2, std::int64_t(std::numeric_limits<std::int32_t>::max())};
  CHECK(contains(complaint([&] { ks::expert_rows<double>(nullptr, nullptr, nullptr, nullptr, n); }), "int32"));
}
