// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/network/events.hpp>

#include <gshard/sim/network/collective_messages.hpp>
#include <gshard/sim/network/link_loads.hpp>
#include <gshard/sim/network/plan_links.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "../../complaint.hpp"
#include "../run/chips.hpp"

namespace gs = gshard;
using gs::all_to_all_scheme, gs::gather_scheme, gs::tie_policy;

namespace {

constexpr double B = 70e9;

constexpr std::array gathers{gather_scheme::one_way, gather_scheme::both_ways, gather_scheme::all_links, gather_scheme::streamed};
constexpr std::array exchanges{all_to_all_scheme::by_dimension, all_to_all_scheme::all_orders, all_to_all_scheme::direct};

/// Collectives of some size among the devices that differ in some axes. A price must equal the time of the same messages, one by one,
/// within a share or 2 us. It must not be below a bound of all algorithms.
class price_check {
 public:
  price_check(const gs::torus_mesh& m, std::uint32_t axes, double bytes)
      : m_(m), axes_(axes), bytes_(bytes), g_(m.group(axes)) {
    const double devices = g_.devices();
    const gs::detail::even_exchange among(m, axes);
    const gs::link_loads loads(m, [&](int from, int to) { return among(from, to) * bytes * (devices - 1) / devices; });
    exchange_bound_ = std::max(loads.bisection_bound(), loads.injection_bound());
    for (int i = 0; i < g_.count; ++i) gather_ports_ += g_[i].wrap ? 2 : 1;  // ports of a chip at the ends of all open rings
  }

  void gather(gather_scheme s) const {
    CAPTURE(int(s));
    const double price = gs::all_gather_seconds(t(), g_, bytes_, s);
    same(gs::all_gather_messages(m_, axes_, bytes_, s), price);
    CHECK(price >= bytes_ * (g_.chips() - 1) / g_.chips() * g_.sharers / (gather_ports_ * t().link_bytes));
  }
  void sums(gather_scheme s) const {
    CAPTURE(int(s));
    same(gs::reduce_scatter_messages(m_, axes_, bytes_, s), gs::reduce_scatter_seconds(t(), g_, bytes_, s));
    same(gs::all_reduce_messages(m_, axes_, bytes_, s), gs::all_reduce_seconds(t(), g_, bytes_, s));
  }
  void exchange(all_to_all_scheme s, double share = 0.02) const {
    for (const tie_policy ties : {tie_policy::one_way, tie_policy::split}) {
      CAPTURE(int(s));
      CAPTURE(int(ties));
      const double price = gs::all_to_all_seconds(t(), g_, bytes_, s, ties);
      same(gs::all_to_all_messages(m_, axes_, bytes_, s, ties), price, share);
      CHECK(price >= exchange_bound_);
    }
  }

 private:
  gs::torus_mesh m_;
  std::uint32_t axes_;
  double bytes_;
  gs::torus_group g_;
  double exchange_bound_ = 0;
  int gather_ports_ = 0;

  const gs::torus& t() const { return m_.topology(); }
  void same(const gs::message_list& messages, double price, double share = 0.02) const {
    CHECK(std::abs(gs::simulate(m_, messages).seconds - price) <= std::max(share * price, 2e-6));
  }
};

}  // namespace

TEST_CASE("messages share links fairly") {
  const gs::torus_mesh m(chips({8}));
  gs::message_list list;
  list.add({.from = 0, .to = 1, .bytes = B});
  CHECK(gs::simulate(m, list).seconds == doctest::Approx(1 + 1e-6));
  list.add({.from = 0, .to = 2, .bytes = B});  // shares the link with the first one, then has it alone
  list.add({.from = 2, .to = 3, .bytes = B});  // disturbs no other message
  const gs::event_run run = gs::simulate(m, list);
  CHECK(run.ends[2] == doctest::Approx(1 + 1e-6));
  CHECK(run.ends[0] == doctest::Approx(2).epsilon(1e-5));
  CHECK(run.ends[1] == doctest::Approx(2).epsilon(1e-5));
  CHECK(run.seconds == run.ends[1]);

  // Three messages share 0-1, so the third one leaves two thirds of 1-2 to a message that starts there.
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

TEST_CASE("collectives take what the closed forms say, within 2 % or 2 us: squares, rectangles, cubes, wrapped and open") {
  for (const std::vector<int>& extents :
       std::vector<std::vector<int>>{{8}, {5}, {2, 2}, {3, 3}, {4, 4}, {8, 8}, {16, 16}, {4, 2}, {5, 3}, {4, 8}, {16, 4}, {8, 16},
                                     {4, 4, 4}, {8, 4, 2}})
    for (const bool wrap : {true, false})
      for (const double bytes : {65536.0, 8388608.0, 33554432.0}) {
        const gs::torus t = chips(extents, 1, wrap);
        CAPTURE(gs::detail::devices_text(extents));
        CAPTURE(wrap);
        CAPTURE(bytes);
        const price_check check(gs::torus_mesh(t), 1, bytes);
        for (const gather_scheme s : gathers) {
          check.gather(s);
          if (t.chips() <= 128) check.sums(s);
        }
        for (const all_to_all_scheme s : exchanges)
          if (t.chips() <= (s == all_to_all_scheme::direct && !wrap ? 64 : 128)) check.exchange(s);
      }
}

TEST_CASE("512 and 1024 chips") {
  for (const int rows : {16, 32})
    for (const bool wrap : {true, false}) {
      CAPTURE(rows);
      CAPTURE(wrap);
      const price_check check(gs::torus_mesh(chips({rows, 32}, 1, wrap)), 1, 8388608);
      for (const gather_scheme s : gathers) check.gather(s);
      check.sums(gather_scheme::streamed);
      if (wrap)
        for (const all_to_all_scheme s : {all_to_all_scheme::by_dimension, all_to_all_scheme::all_orders}) check.exchange(s);
    }
}

TEST_CASE("any torus, some of whose dimensions wrap, and any axes over parts of them") {
  std::mt19937 random(20);
  const auto draw = [&](int n) { return int(random() % unsigned(n)); };
  for (int round = 0; round < 60; ++round) {
    gs::torus t = chips(std::vector<int>(std::size_t(1 + draw(3)), 1), 1 + draw(2));
    gs::torus_mesh m(t, {});
    for (int d = 0; d < t.dims; ++d) {
      t.extents[std::size_t(d)] = 2 + draw(t.dims == 1 ? 12 : t.dims == 2 ? 6 : 3);
      t.wrap[std::size_t(d)] = draw(2) == 0;
    }
    m.topology() = t;
    for (int d = 0; d < t.dims; ++d) {
      const int inner = t.extent(d) % 2 == 0 && draw(2) == 0 ? 2 : 1;
      m.add({{d, t.extent(d) / inner, inner}});
      if (inner > 1) m.add({{d, inner, 1}});
    }
    m.add({{gs::torus_part::cores}});
    REQUIRE(m.valid());
    const std::uint32_t axes = 1 + std::uint32_t(draw((1 << m.rank()) - 1));
    const gs::torus_group g = m.group(axes);
    if (g.count == 0) continue;
    CAPTURE(round);
    CAPTURE(gs::detail::devices_text(t.extents));
    CAPTURE(axes);
    bool wraps = true, open = true;
    for (int i = 0; i < g.count; ++i) (g[i].wrap ? open : wraps) = false;
    const price_check check(m, axes, std::array{65536.0, 8388608.0, 33554432.0}[std::size_t(draw(3))]);
    for (const gather_scheme s : gathers) {
      check.gather(s);
      check.sums(s);
    }
    const bool mixed = g.count > 2 && !wraps && !open;  // an open ring may be as busy as the wrapped ones
    for (const all_to_all_scheme s : exchanges) check.exchange(s, mixed && s == all_to_all_scheme::direct ? 0.08 : 0.02);
  }
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
