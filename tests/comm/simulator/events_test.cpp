// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/comm/simulator/events.hpp>

#include <gshard/comm/simulator/collective_messages.hpp>
#include <gshard/comm/simulator/link_loads.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../../complaint.hpp"
#include "chips.hpp"

namespace gs = gshard;
using gs::all_to_all_scheme, gs::gather_scheme, gs::tie_policy;

namespace {

constexpr double B = 70e9;

}  // namespace

TEST_CASE("messages share links fairly") {
  const gs::torus_mesh m(chips({8}));
  gs::message_list list;
  list.add({.from = 0, .to = 1, .bytes = B});
  CHECK(gs::simulate(m, list).seconds == doctest::Approx(1 + 1e-6));
  list.add({.from = 0, .to = 2, .bytes = B});  // shares the link with the first, then has it alone
  list.add({.from = 2, .to = 3, .bytes = B});  // disturbs nobody
  const gs::event_run run = gs::simulate(m, list);
  CHECK(run.ends[2] == doctest::Approx(1 + 1e-6));
  CHECK(run.ends[0] == doctest::Approx(2).epsilon(1e-5));
  CHECK(run.ends[1] == doctest::Approx(2).epsilon(1e-5));
  CHECK(run.seconds == run.ends[1]);

  // 0-1 is shared by three, so the third leaves two thirds of 1-2 to one that starts there.
  gs::message_list three;
  for (const int to : {1, 1, 2}) three.add({.from = 0, .to = to, .bytes = B});
  three.add({.from = 1, .to = 2, .bytes = B * 2 / 3});
  CHECK(gs::simulate(m, three).ends[3] == doctest::Approx(1).epsilon(1e-5));
  CHECK(gs::simulate(m, three).ends[2] == doctest::Approx(3).epsilon(1e-5));
}

TEST_CASE("messages wait for messages, and for work, which goes on meanwhile") {
  const gs::torus_mesh m(chips({4}, 2));
  gs::message_list list;
  const int work = list.add({.from = 0, .to = 0, .seconds = 0.5});
  const int first = list.add({.from = 0, .to = 2, .bytes = B}, {work});
  list.add({.from = 2, .to = 4, .bytes = B}, {first});
  list.add({.from = 2, .to = 2, .seconds = 2});
  list.add({.from = 0, .to = 1, .bytes = m.topology().core_bytes}, {work});  // between cores of a chip
  const gs::event_run run = gs::simulate(m, list);
  CHECK(run.ends[0] == doctest::Approx(0.5));
  CHECK(run.ends[1] == doctest::Approx(1.5).epsilon(1e-5));
  CHECK(run.ends[2] == doctest::Approx(2.5).epsilon(1e-5));
  CHECK(run.ends[3] == 2);
  CHECK(run.ends[4] == doctest::Approx(1.5));
}

TEST_CASE("collectives take what the closed forms say, within 2 % or 2 us") {
  double share = 0.02;
  const auto same = [&](double simulated, double closed) { CHECK(std::abs(simulated - closed) <= std::max(share * closed, 2e-6)); };
  for (const std::vector<int>& extents : std::vector<std::vector<int>>{{8}, {5}, {4, 4}, {8, 8}, {2, 2}, {3, 3}, {16, 16}, {4, 4, 4}})
    for (const double bytes : {65536.0, 8388608.0, 33554432.0})
      for (const bool wrap : {true, false}) {
        const gs::torus t = chips(extents, 1, wrap);
        const gs::torus_mesh m(t);
        const gs::torus_group g = gs::all_of(t);
        CAPTURE(gs::detail::devices_text(extents));
        CAPTURE(bytes);
        CAPTURE(wrap);
        for (const gather_scheme s : {gather_scheme::one_way, gather_scheme::both_ways, gather_scheme::all_links}) {
          CAPTURE(int(s));
          // In an open mesh the middle has done with a phase before the ends have, and its next one meets the others' on the links.
          share = !wrap && s == gather_scheme::all_links ? 0.15 : 0.02;
          same(gs::simulate(m, gs::all_gather_messages(m, 1, bytes, s)).seconds, gs::all_gather_seconds(t, g, bytes, s));
          if (t.chips() > 64) continue;
          same(gs::simulate(m, gs::reduce_scatter_messages(m, 1, bytes, s)).seconds, gs::reduce_scatter_seconds(t, g, bytes, s));
          same(gs::simulate(m, gs::all_reduce_messages(m, 1, bytes, s)).seconds, gs::all_reduce_seconds(t, g, bytes, s));
        }
        share = 0.02;
        for (const all_to_all_scheme s : {all_to_all_scheme::by_dimension, all_to_all_scheme::all_orders, all_to_all_scheme::direct})
          for (const tie_policy ties : {tie_policy::one_way, tie_policy::split}) {
            if ((s == all_to_all_scheme::direct && t.chips() > 64) || (t.chips() > 64 && !wrap)) continue;
            CAPTURE(int(s));
            CAPTURE(int(ties));
            same(gs::simulate(m, gs::all_to_all_messages(m, 1, bytes, s, ties)).seconds, gs::all_to_all_seconds(t, g, bytes, s, ties));
          }
      }
}

TEST_CASE("streamed gathers and sums take what their price says: within 2 % or 2 us on rings and squares, 7 % where extents differ") {
  const auto check = [](const gs::torus& t, double bytes, double share) {
    const gs::torus_mesh m(t);
    CAPTURE(gs::detail::devices_text(t.extents));
    CAPTURE(bytes);
    const auto same = [&](double simulated, double price) { CHECK(std::abs(simulated - price) <= std::max(share * price, 2e-6)); };
    same(gs::simulate(m, gs::all_gather_messages(m, 1, bytes, gather_scheme::streamed)).seconds,
         gs::all_gather_seconds(t, all_of(t), bytes, gather_scheme::streamed));
    if (t.chips() > 256) return;
    same(gs::simulate(m, gs::all_reduce_messages(m, 1, bytes, gather_scheme::streamed)).seconds,
         gs::all_reduce_seconds(t, all_of(t), bytes, gather_scheme::streamed));
  };
  for (const double bytes : {65536.0, 8388608.0, 33554432.0}) {
    for (const std::vector<int>& extents :
         std::vector<std::vector<int>>{{8}, {5}, {2, 2}, {3, 3}, {5, 3}, {4, 4}, {8, 8}, {16, 16}, {4, 4, 4}})
      check(chips(extents), bytes, 0.02);
    for (const std::vector<int>& extents : std::vector<std::vector<int>>{{4, 2}, {8, 4}, {16, 8}, {32, 16}})
      check(chips(extents), bytes, 0.07);
  }
  check(chips({32, 32}), 8388608, 0.02);
}

TEST_CASE("streamed gathers on open meshes take up to a third more than their price") {
  for (const std::vector<int>& extents : std::vector<std::vector<int>>{{8}, {5}, {4, 4}, {8, 8}, {2, 2}, {8, 4}, {4, 2}, {4, 4, 4}})
    for (const double bytes : {65536.0, 8388608.0, 33554432.0}) {
      const gs::torus t = chips(extents, 1, false);
      const gs::torus_mesh m(t);
      CAPTURE(gs::detail::devices_text(extents));
      CAPTURE(bytes);
      const double gather = gs::simulate(m, gs::all_gather_messages(m, 1, bytes, gather_scheme::streamed)).seconds,
                   price = gs::all_gather_seconds(t, gs::all_of(t), bytes, gather_scheme::streamed);
      CHECK(gather <= 4.0 / 3 * price);
      CHECK(gather >= 0.86 * price);
    }
}

TEST_CASE("1024 chips") {
  const gs::torus t = chips({32, 32});
  const gs::torus_mesh m(t);
  const gs::torus_group g = gs::all_of(t);
  for (const double bytes : {65536.0, 8388608.0, 33554432.0}) {
    CAPTURE(bytes);
    for (const gather_scheme s : {gather_scheme::one_way, gather_scheme::both_ways, gather_scheme::all_links})
      CHECK(gs::simulate(m, gs::all_gather_messages(m, 1, bytes, s)).seconds ==
            doctest::Approx(gs::all_gather_seconds(t, g, bytes, s)).epsilon(0.01));
  }
  constexpr double bytes = 8388608;
  for (const all_to_all_scheme s : {all_to_all_scheme::by_dimension, all_to_all_scheme::all_orders})
    CHECK(gs::simulate(m, gs::all_to_all_messages(m, 1, bytes, s, tie_policy::one_way)).seconds ==
          doctest::Approx(gs::all_to_all_seconds(t, g, bytes, s, tie_policy::one_way)).epsilon(0.01));
}

TEST_CASE("groups of an axis, all at once: of parts of a ring, and of cores that share links") {
  const gs::torus t = chips({8, 4}, 2);
  for (const gs::torus_mesh& m : {gs::torus_mesh(t, {8, 8}), gs::torus_mesh(t, {4, 16}), gs::torus_mesh(t, {4, 4, 4}),
                                  gs::torus_mesh(t, {}).add({{gs::torus_part::cores}}).add({{0}, {1}})}) {
    REQUIRE(m.valid());
    for (std::uint32_t axes = 1; axes < 1u << m.rank(); ++axes) {
      const gs::torus_group g = m.group(axes);
      if (g.count == 0) continue;
      CAPTURE(axes);
      constexpr double bytes = 8388608;
      CHECK(gs::simulate(m, gs::all_gather_messages(m, axes, bytes, gather_scheme::both_ways)).seconds ==
            doctest::Approx(gs::all_gather_seconds(t, g, bytes, gather_scheme::both_ways)).epsilon(0.02));
      CHECK(gs::simulate(m, gs::all_to_all_messages(m, axes, bytes, all_to_all_scheme::by_dimension, tie_policy::one_way)).seconds ==
            doctest::Approx(gs::all_to_all_seconds(t, g, bytes, all_to_all_scheme::by_dimension, tie_policy::one_way)).epsilon(0.02));
    }
  }
}

TEST_CASE("what links carry is what the link loads say") {
  gs::torus t = chips({4, 8});
  const gs::torus_mesh m(t);
  const gs::event_run run = gs::simulate(m, gs::all_to_all_messages(m, 1, 32e6, all_to_all_scheme::direct, tie_policy::split));
  const std::vector<gs::link_load> loads = gs::link_loads(m, [](int, int) { return 1e6; }).loads();
  REQUIRE(run.links.size() == loads.size());
  for (std::size_t l = 0; l < loads.size(); ++l) {
    CHECK((run.links[l].from == loads[l].from && run.links[l].to == loads[l].to));
    CHECK(run.links[l].bytes == doctest::Approx(loads[l].bytes));
  }
}

TEST_CASE("a slow link, a dead link, a straggler and jitter make a collective longer") {
  const gs::torus t = chips({8, 8});
  const gs::torus_mesh m(t);
  constexpr double bytes = 8388608;
  const auto gather = [&](const gs::faults& f) {
    return gs::simulate(m, gs::all_gather_messages(m, 1, bytes, gather_scheme::both_ways, f), f).seconds;
  };
  const double whole = gather({});
  CHECK(gather({.links = {{0, 1, 0.5}}}) > 1.5 * whole);  // a ring is as slow as its slowest link
  CHECK(gather({.links = {{0, 1, 0.5}}}) < 2 * whole);
  CHECK(gather({.links = {{0, 1, 0}}}) > 1.1 * whole);
  CHECK(gather({.stragglers = {{5, 2, 0}}}) > 1.5 * whole);
  CHECK(gather({.stragglers = {{5, 1, 1e-3}}}) > whole + 0.9e-3);
  CHECK(gather({.stragglers = {{5, 1, 1e-3}}}) < whole + 1e-3 + 1e-6);
  const double shaken = gather({.jitter = 0.2, .seed = 3});
  CHECK((shaken > whole && shaken < 1.2 * whole + 1e-6));
  CHECK(shaken == gather({.jitter = 0.2, .seed = 3}));
  CHECK(shaken != gather({.jitter = 0.2, .seed = 4}));
}

TEST_CASE("who waits for a dead device is told") {
  const gs::torus_mesh m(chips({4}, 2));
  const auto text = [&](const gs::faults& f, const gs::message_list& list) {
    return complaint([&] { gs::simulate(m, list, f, "all_gather over axis 0"); });
  };
  const gs::faults dead{.dead_devices = {3}, .timeout = 30};
  CHECK(text(dead, gs::all_gather_messages(m, 1, 1e6, gather_scheme::one_way, dead)) ==
        "all_gather over axis 0: devices 0, 4, 6 waited 30 s for device 3, which is dead");
  gs::message_list list;
  const int first = list.add({.from = 3, .to = 0, .bytes = 8});
  list.add({.from = 0, .to = 5, .bytes = 8}, {first});
  list.add({.from = 6, .to = 3, .bytes = 8});
  CHECK(text(dead, list) == "all_gather over axis 0: devices 0, 5 waited 30 s for device 3, which is dead");
  CHECK(text({.dead_devices = {7}}, list).empty());
  CHECK(text({.dead_devices = {9}}, list) == "faults: dead device 9 is not one of 8 devices");
  gs::message_list itself;
  itself.add({.from = 0, .to = 1, .bytes = 8}, {0});
  CHECK(text({}, itself) == "all_gather over axis 0: messages wait for one another");
  const gs::faults cut{.links = {{0, 1, 0}, {0, 3, 0}}};
  CHECK(text(cut, gs::all_gather_messages(m, 1, 1e6, gather_scheme::one_way, cut)) ==
        "dead links such as from chip 0 to chip 1 cut off chip 1 from chip 0");
}

TEST_CASE("overlap: a product computed while its operand's next block is on the way") {
  const gs::torus t = chips({8});
  const gs::torus_mesh m(t);
  gs::message_list list;
  constexpr double block = 1e6, product = 20e-6;  // seconds
  std::vector<int> has(8, -1), done(8, -1);
  for (int step = 0; step < 8; ++step) {
    std::vector<int> next(8, -1);
    for (int d = 0; d < 8; ++d) {
      std::vector<int> after;
      if (has[std::size_t(d)] >= 0) after.push_back(has[std::size_t(d)]);
      if (step < 7) next[std::size_t((d + 1) % 8)] = list.add({.from = d, .to = (d + 1) % 8, .bytes = block}, after);
      if (done[std::size_t(d)] >= 0) after.push_back(done[std::size_t(d)]);
      done[std::size_t(d)] = list.add({.from = d, .to = d, .seconds = product}, after);
    }
    has = next;
  }
  CHECK(gs::simulate(m, list).seconds == doctest::Approx(8 * product));  // a block takes 15.3 us, hidden
}
