// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/network/link_loads.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "../../complaint.hpp"
#include "../run/chips.hpp"

namespace gs = gshard;
using gs::all_to_all_scheme, gs::tie_policy;

namespace {

const auto uniform = [](double bytes) { return [bytes](int, int) { return bytes; }; };

double largest(const std::vector<gs::link_load>& loads) {
  double most = 0;
  for (const gs::link_load& l : loads) most = std::max(most, l.bytes);
  return most;
}

/// The loads of links if every message is routed separately, link by link.
std::vector<double> one_by_one(const gs::torus_mesh& mesh, auto bytes, const gs::faults& broken = {}) {
  const gs::torus_links links(mesh.topology(), broken);
  std::vector<double> carried(std::size_t(links.count()), 0.0);
  const int devices = mesh.topology().devices();
  for (int from = 0; from < devices; ++from)
    for (int to = 0; to < devices; ++to)
      for (const bool up : {true, false}) {
        if (!up && mesh.topology().ties == tie_policy::one_way) continue;
        const double share = mesh.topology().ties == tie_policy::split ? 0.5 : 1;
        for (const int l : links.way(mesh.chip(from), mesh.chip(to), up)) carried[std::size_t(l)] += share * bytes(from, to);
      }
  std::vector<double> live;
  for (int l = 0; l < links.count(); ++l)
    if (links.live(l)) live.push_back(carried[std::size_t(l)]);
  return live;
}

}  // namespace

TEST_CASE("uniform traffic of 16 to 1024 devices costs what the closed form says") {
  for (const bool wrap : {true, false})
    for (const tie_policy ties : {tie_policy::one_way, tie_policy::split})
      for (const int cores : {1, 2})
        for (const std::vector<int>& extents : std::vector<std::vector<int>>{
                 {16}, {4, 4}, {4, 2, 2}, {32}, {8, 4}, {64}, {8, 8}, {4, 4, 4}, {16, 8}, {16, 16},
                 {8, 8, 4}, {32, 16}, {8, 8, 8}, {5, 7}}) {
          gs::torus t = chips(extents, cores, wrap);
          t.ties = ties;
          t.hop = 0;
          const double sent = double(8 << 20), devices = t.devices();
          const gs::link_loads loads(gs::torus_mesh(t), uniform(sent / devices));
          const double closed = gs::all_to_all_seconds(t, all_of(t), sent, all_to_all_scheme::direct, ties);
          CAPTURE(gs::detail::devices_text(extents));
          CAPTURE(wrap);
          CHECK(std::abs(loads.busiest() - closed) <= 0.01 * closed);
          CHECK(loads.busiest() >= loads.bisection_bound() * (1 - 1e-9));
          CHECK(loads.busiest() >= loads.injection_bound() * (1 - 1e-9));
          if (extents.front() == extents.back() && extents.front() % 2 == 0 && ties == tie_policy::split)
            CHECK(loads.bisection_bound() == doctest::Approx(closed));
        }
}

TEST_CASE("uniform traffic of 1024 chips, by the numbers of an all-to-all") {
  gs::torus t = chips({32, 32}, 2);
  t.hop = 0;
  const gs::link_loads loads(gs::torus_mesh(t), uniform(8e6 / 2048));
  CHECK(loads.seconds() * 1e6 == doctest::Approx(914.3).epsilon(0.001));
  CHECK(loads.loads().size() == 4096);
  CHECK(loads.bisection_bound() == doctest::Approx(loads.seconds()));
  t.wrap = {false, false, false};
  CHECK(gs::link_loads(gs::torus_mesh(t), uniform(8e6 / 2048)).seconds() * 1e6 == doctest::Approx(1828.6).epsilon(0.001));
}

TEST_CASE("any traffic on any shape: as message by message, and never below the bounds") {
  constexpr std::uint32_t seed = 20260;
  MESSAGE("seed ", seed);
  std::mt19937 random(seed);
  const auto below = [&](int n) { return int(random() % std::uint32_t(n)); };
  for (int round = 0; round < 10000; ++round) {
    std::vector<int> extents(std::size_t(1 + below(3)), 1);
    for (int& n : extents) n = 1 + below(round % 100 == 0 ? 8 : 4);
    gs::torus t = chips(extents, 1 + below(2));
    for (bool& wrap : t.wrap) wrap = below(3) > 0;
    t.ties = below(2) ? tie_policy::split : tie_policy::one_way;
    gs::torus_mesh mesh(t);
    if (below(2)) mesh.follow_snake(0);
    const auto n = std::size_t(t.devices());
    std::vector<double> matrix(n * n, 0.0);
    const int kind = below(4);  // all to all, some pairs, one row, one column
    for (std::size_t i = 0; i < n * n; ++i)
      if (kind == 0 || (kind == 1 && below(4) == 0) || (kind == 2 && i / n == n / 2) || (kind == 3 && i % n == n / 3))
        matrix[i] = double(below(1000));
    const auto bytes = [&](int from, int to) { return matrix[std::size_t(from) * n + std::size_t(to)]; };
    const gs::link_loads loads(mesh, bytes);
    REQUIRE(loads.busiest() >= loads.bisection_bound() * (1 - 1e-9));
    REQUIRE(loads.busiest() >= loads.injection_bound() * (1 - 1e-9));
    if (round % 10 != 0) continue;
    const std::vector<double> expected = one_by_one(mesh, bytes);
    const std::vector<gs::link_load> found = loads.loads();
    REQUIRE(found.size() == expected.size());
    for (std::size_t l = 0; l < found.size(); ++l) REQUIRE(found[l].bytes == doctest::Approx(expected[l]));
  }
}

TEST_CASE("what all send to one device waits at its links") {
  const gs::torus t = chips({8, 8});
  const gs::link_loads loads(gs::torus_mesh(t), [](int from, int to) { return from != to && to == 27 ? 70e3 : 0; });
  CHECK(loads.injection_bound() == doctest::Approx(63 * 1e-6 / 4));
  CHECK(largest(loads.loads()) == doctest::Approx(32 * 70e3 - 8 * 70e3 / 2));  // half a ring of columns, the far column from both sides
  CHECK(loads.seconds() == doctest::Approx(28e-6 + t.hop));
}

TEST_CASE("a slow link is not avoided, a dead one is") {
  const gs::torus t = chips({4, 4});
  const gs::torus_mesh mesh(t);
  const auto one = [](int from, int to) { return from == 0 && to == 1 ? 70e3 : 0; };
  CHECK(gs::link_loads(mesh, one).busiest() == doctest::Approx(1e-6));
  CHECK(gs::link_loads(mesh, one, {.links = {{0, 1, 0.25}}}).busiest() == doctest::Approx(4e-6));
  const gs::link_loads around(mesh, one, {.links = {{0, 1, 0}}});
  CHECK(around.busiest() == doctest::Approx(1e-6));
  CHECK(around.loads().size() == 63);
  double total = 0;
  for (const gs::link_load& l : around.loads()) {
    total += l.bytes;
    CHECK_FALSE((l.from == 0 && l.to == 1));
  }
  CHECK(total == doctest::Approx(3 * 70e3));

  // All messages, with several dead links.
  const gs::faults broken{.links = {{0, 1, 0}, {1, 0, 0}, {5, 9, 0}, {15, 12, 0}}};
  for (const tie_policy ties : {tie_policy::one_way, tie_policy::split}) {
    gs::torus t2 = t;
    t2.ties = ties;
    const gs::link_loads loads(gs::torus_mesh(t2), uniform(1000), broken);
    const std::vector<double> expected = one_by_one(gs::torus_mesh(t2), uniform(1000), broken);
    REQUIRE(loads.loads().size() == expected.size());
    double sum = 0;
    for (std::size_t l = 0; l < expected.size(); ++l) sum += expected[l] - loads.loads()[l].bytes;
    CHECK(std::abs(sum) < 1e-6);
    CHECK(loads.busiest() > gs::link_loads(gs::torus_mesh(t2), uniform(1000)).busiest());
  }
}

TEST_CASE("who is cut off is named") {
  const gs::torus_mesh open(chips({4}, 2, false));
  CHECK(complaint([&] { gs::link_loads(open, uniform(1), {.links = {{1, 2, 0}}}); }) ==
        "link loads: dead links such as from chip 1 to chip 2 cut off the devices 4, 5 from the devices 0, 1");
  CHECK(complaint([&] { gs::link_loads(open, uniform(1), {.links = {{0, 2, 0}}}); }) ==
        "faults: link from chip 0 to chip 2 is not a link of the torus");
  CHECK(complaint([&] { gs::link_loads(open, uniform(1), {.links = {{0, 1, 2}}}); }) ==
        "faults: link from chip 0 to chip 1 cannot be faster than it is");
  CHECK_NOTHROW(gs::link_loads(open, [](int from, int to) { return from > to ? 1 : 0; }, {.links = {{1, 2, 0}}}));
}

TEST_CASE("groups of axes, all at once, cost what the closed form says") {
  for (const tie_policy ties : {tie_policy::one_way, tie_policy::split}) {
    gs::torus t = chips({16, 8}, 2);
    t.ties = ties;
    t.hop = 0;
    for (const gs::torus_mesh& m : {gs::torus_mesh(t, {16, 16}), gs::torus_mesh(t, {8, 32}), gs::torus_mesh(t, {4, 4, 16}),
                                    gs::torus_mesh(t, {}).add({{gs::torus_part::cores}}).add({{1}, {0}})}) {
      REQUIRE(m.valid());
      for (std::uint32_t axes = 1; axes < 1u << m.rank(); ++axes) {
        // Devices are in one group if they differ only in these axes.
        const auto group_of = [&](int device) {
          int group = 0;
          for (int a = m.rank(), step = 1; a-- > 0; step *= m.extent(a), device /= m.extent(a))
            if (!((axes >> a) & 1u)) group += device % m.extent(a) * step;
          return group;
        };
        CAPTURE(axes);
        const gs::torus_group g = m.group(axes);
        const gs::link_loads loads(m, [&](int from, int to) { return group_of(from) == group_of(to) ? 1e6 : 0; });
        CHECK(loads.busiest() ==
              doctest::Approx(gs::all_to_all_seconds(t, g, 1e6 * g.devices(), all_to_all_scheme::direct, ties)).epsilon(0.01));
      }
    }
  }
}

TEST_CASE("a permutation costs at most its bound, which swapped axes reach") {
  std::mt19937 random(7);
  for (const bool wrap : {true, false}) {
    gs::torus t = chips({8, 8}, 1, wrap);
    t.hop = 0;
    t.ties = tie_policy::one_way;
    const gs::torus_mesh m(t);
    const double bound = gs::permutation_seconds(t, all_of(t), 1e6);
    std::vector<int> goes_to(64, 0);
    for (int i = 0; i < 64; ++i) goes_to[std::size_t(i)] = i % 8 * 8 + i / 8;
    const auto seconds = [&] {
      return gs::link_loads(m, [&](int from, int to) { return goes_to[std::size_t(from)] == to ? 1e6 : 0; }).busiest();
    };
    CHECK(seconds() == doctest::Approx(bound));
    for (int i = 0; i < 50; ++i) {
      std::ranges::shuffle(goes_to, random);
      CHECK(seconds() <= bound);
    }
    // All send to the next in rank order.
    for (int i = 0; i < 64; ++i) goes_to[std::size_t(i)] = (i + 1) % 64;
    CHECK(seconds() == doctest::Approx(gs::shift_seconds(t, all_of(t), 1e6, 0)));
  }
}
