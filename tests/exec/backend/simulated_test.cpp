// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/backend/simulated.hpp>

#include "random_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gs = gshard;

namespace {
const std::vector<std::vector<int>> meshes{{1}, {2}, {3}, {2, 2}, {2, 3}, {3, 1, 2}, {2, 2, 2}};

/// Runs a collective with random cases on all meshes and masks of axes.
template <class Case, class Collective>
void on_all_meshes(Collective collective) {
  for (const std::vector<int>& extents : meshes) {
    gs::simulated b(extents);
    for (std::uint32_t axes = 0; axes < cases::n_masks(extents); ++axes) {
      for (std::uint64_t seed = 0; seed < 10; ++seed) {
        CAPTURE(axes);
        CAPTURE(seed);
        Case c(extents, axes, seed);
        collective(b, axes, cases::parts(c, b.devices()));
        CHECK(c.recv == c.expected);
      }
    }
  }
}
}  // namespace

TEST_CASE("simulated: exchange brings every block to its place and touches nothing else") {
  on_all_meshes<cases::exchange_case>([](gs::simulated& b, std::uint32_t axes, const auto& parts) { b.exchange(axes, parts); });
}

TEST_CASE("simulated: all_gather brings every block to all members, in place or not") {
  on_all_meshes<cases::gather_case>([](gs::simulated& b, std::uint32_t axes, const auto& parts) { b.all_gather(axes, parts); });
}

TEST_CASE("simulated: of several exchanges under way, each brings its blocks when it is finished, in any order") {
  cases::rng r(5);
  for (const std::vector<int>& extents : meshes) {
    if (gs::device_count(extents) == 1) continue;
    gs::simulated b(extents);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      CAPTURE(seed);
      cases::several_exchanges x(extents, 5, seed);
      const auto before = x.all;
      x.start_all(b);
      for (std::size_t i = 0; i < x.all.size(); ++i) CHECK(x.all[i].recv == before[i].recv);
      x.finish_all(r);
      for (cases::exchange_case& c : x.all) CHECK(c.recv == c.expected);
    }
  }
}

TEST_CASE("simulated: what changes while it is sent arrives changed") {
  gs::simulated b({2});
  cases::exchange_case c({2}, 1, 3);
  const auto parts = cases::parts(c, b.devices());
  REQUIRE(parts[0].send[1].size() > 0);
  gs::pending_exchange under_way = b.start(1, parts);
  std::fill(c.send[0].begin(), c.send[0].end(), std::byte{7});
  under_way.finish();
  for (const std::byte x : parts[1].recv[0]) CHECK(x == std::byte{7});
}

TEST_CASE("simulated: counts what reaches each device") {
  gs::simulated b({2, 3});
  cases::exchange_case x({2, 3}, 0b10, 1);
  b.exchange(0b10, cases::parts(x, b.devices()));
  cases::gather_case g({2, 3}, 0b11, 1);
  b.all_gather(0b11, cases::parts(g, b.devices()));
  const std::vector<std::span<std::byte>> nothing(1);
  b.all_gather(0, std::vector<gs::gather_part>(6, {{}, nothing}));
  for (std::size_t d = 0; d < 6; ++d) {
    const cases::sizes& s = x.recv_bytes[d];
    std::int64_t gathered = 0;
    for (std::size_t e = 0; e < 6; ++e) gathered += e == d ? 0 : std::int64_t(g.send[e].size());
    CHECK(b.received()[d] == gs::traffic{1, s[0] + s[1] + s[2] - s[d % 3], 1, gathered});
  }
  b.reset_received();
  CHECK(b.received()[5] == gs::traffic{});
}

TEST_CASE("simulated: wrong arguments are errors that name the devices") {
  gs::simulated b({2});
  cases::exchange_case c({2}, 1, 3);
  auto parts = cases::parts(c, b.devices());
  cases::bytes memory(1000);
  const auto longer = [&](std::span<const std::span<std::byte>> recv) {
    return std::vector<std::span<std::byte>>{std::span(memory).first(recv[0].size() + 1), recv[1]};
  };
  const auto wrong = longer(parts[1].recv);
  const std::vector<std::span<std::byte>> three(3);

  CHECK_THROWS_WITH_AS(b.exchange(2, parts), "exchange: axes {1}: the mesh 2 has fewer axes", gs::error);
  CHECK_THROWS_WITH_AS(b.exchange(1, std::span(parts).first(1)), "exchange: 1 parts for 2 local devices",
                       gs::error);
  parts[1].recv = three;
  CHECK_THROWS_WITH_AS(b.exchange(1, parts), "exchange: device 1: recv has 3 entries for a group of 2", gs::error);
  parts[1].recv = wrong;
  CHECK_THROWS_WITH_AS(b.exchange(1, parts), doctest::Contains("bytes to device 1, which expects"),
                       gs::error);

  cases::gather_case g({2}, 1, 3);
  auto gathers = cases::parts(g, b.devices());
  gathers[0].send = memory;
  CHECK_THROWS_WITH_AS(b.all_gather(1, gathers), doctest::Contains("all_gather: device 0 sends"), gs::error);
  gathers = cases::parts(g, b.devices());
  const auto other = longer(gathers[1].recv);
  gathers[1].recv = other;
  CHECK_THROWS_WITH_AS(b.all_gather(1, gathers),
                       "all_gather over axes {0}: device 1 and device 0 pass different sizes", gs::error);
}
