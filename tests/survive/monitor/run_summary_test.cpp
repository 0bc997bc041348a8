// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/monitor/run_summary.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace gs = gshard;
namespace detail = gs::detail;

TEST_CASE("summary of a run: buckets have all steps once, whatever their number") {
  for (const std::uint32_t first : {0u, 1u, 4000000000u})
    for (std::uint32_t n = 1; n < 70; ++n)
      for (const std::size_t most : {1u, 2u, 7u, 64u}) {
        const gs::detail::step_buckets b(first, first + n - 1, most);
        CHECK(b.count <= most);
        CHECK(b.of(first) == 0);
        CHECK(b.of(first + n - 1) == b.count - 1);
        for (std::uint32_t i = 1; i < n; ++i) {
          const std::size_t further = b.of(first + i) - b.of(first + i - 1);
          CHECK(further <= 1);
        }
      }
}

TEST_CASE("summary of a run: of steps that were done again, the last ones count, as if all records were at hand") {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::uint32_t> records;
    std::uint32_t step = std::uint32_t(random() % 5);
    for (int i = 0; i < 60; ++i) {
      records.push_back(step);
      step = random() % 8 == 0 ? std::uint32_t(random() % (step + 1)) : step + 1 + std::uint32_t(random() % 3 == 0);
    }
    std::vector<bool> counts(records.size());
    std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t i = records.size(); i-- > 0;)
      if ((counts[i] = records[i] < lowest)) lowest = records[i];
    detail::repeated_steps steps;
    CHECK(steps.empty());
    for (std::size_t i = 0; i < records.size(); ++i) steps.see(3 * i, records[i]);
    CHECK(steps.first() == lowest);
    CHECK(steps.last() == records.back());
    for (std::size_t i = 0; i < records.size(); ++i) CHECK(steps.counts(3 * i, records[i]) == counts[i]);
  }
}

TEST_CASE("summary of a run: sums of lists do not depend on when their length is known") {
  detail::list_grid g;
  double right = 0;
  for (const std::size_t length : {3u, 4u, 9u, 40u, 5u}) {
    const std::vector<float> list(length, float(length));
    g.add(length % 2, 2, list, 4);
    right += double(length * length);
  }
  double sum = 0;
  std::uint64_t n = 0;
  for (const auto& column : g.cells)
    for (const detail::range_of& r : column) {
      sum += r.sum;
      n += r.n;
    }
  CHECK(sum == right);
  CHECK(n == 61);
  CHECK(g.length == 40);
  CHECK(g.group == 16);
  for (const auto& column : g.cells) CHECK(column.size() <= 4);
}

TEST_CASE("summary of a run: as many numbers for a million steps as for a thousand; unknown steps and processes are ignored") {
  for (const std::uint32_t n : {1000u, 1000000u}) {
    detail::run_summary all(10, 9 + n, 300);
    CHECK(all.empty());
    CHECK(all.time.size() <= 800);
    CHECK(all.rows.size() == 100);
    CHECK(all.rows[0].compute.size() <= 160);
  }
  detail::run_summary few(10, 19, 2);
  gs::step_history s;
  s.seconds = 2;
  for (const std::uint32_t step : {9u, 10u, 19u, 20u}) {
    s.step = step;
    few.add(1, s);
    few.add(2, s);
  }
  CHECK(few.records == 2);
  CHECK(few.steps() == 2);
  CHECK(few.total == 4);
  CHECK(few.rows[1].seconds[9].sum == 2);
  CHECK(few.rows[0].seconds[9].n == 0);
  CHECK(few.predicted[0].n == 0);
  detail::run_summary().add(0, s);
}
