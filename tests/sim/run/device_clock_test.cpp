// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/run/device_clock.hpp>

#include <gshard/plan.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::none, gs::P;

namespace {

// Two sums over "x" of products, with another product between them.
inline constexpr auto model = [](auto&, auto x, auto w) {
  const auto whole = gs::annotate<P<none, none>>(gs::einsum<"AB,BC->AC">(x, w));
  return std::tuple{whole, gs::einsum<"AB,BC->A">(gs::relu(x), w)};
};
using program = gs::program<model, gs::mesh<gs::axis<"y">, gs::axis<"x">>, gs::in<"AB", P<none, "x">>, gs::in<"BC", P<"x", none>>,
                            gs::combine_up_to<0>>;

/// Every local step takes 1 s, every collective 2 s, or `collective`.
std::vector<gs::step_record> steps(double collective = 2) {
  std::vector<gs::step_record> list;
  for (std::size_t i = 0; i < program::plan.steps.size(); ++i) {
    const gs::op_ref kind = program::plan.steps[i].kind;
    gs::step_record s;
    s.step = std::int32_t(i);
    s.bytes_received = gs::traits(kind).collective;
    s.seconds = gs::traits(kind).alias ? 0 : gs::traits(kind).collective ? collective : 1;
    list.push_back(s);
  }
  return list;
}
gs::detail::clock_times run(const gs::faults& broken = {}, bool overlap = false, double hidden = 1, double collective = 2) {
  const std::vector<int> extents{2, 3};
  const auto list = steps(collective);
  const gs::extents e = program::plan.bind({{'A', 60}, {'B', 60}, {'C', 60}}, extents);
  const gs::list<gs::async_interval> schedule = overlap ? gs::async_schedule(program::plan, e) : gs::in_turn(program::plan);
  return gs::detail::run_clocks(program::plan, extents, broken, schedule, list, std::vector<std::int64_t>(list.size(), 7), 3, hidden);
}
double total() {
  double sum = 0;
  for (const gs::step_record& s : steps()) sum += s.seconds;
  return sum;
}

}  // namespace

TEST_CASE("clocks: like devices have one track, on which steps follow one another") {
  const auto o = run();
  REQUIRE(o.tracks.size() == 1);
  CHECK(o.tracks[0].devices == std::vector<int>{0, 1, 2, 3, 4, 5});
  CHECK(o.seconds == total());
  double now = 0;
  for (const gs::time_span& s : o.tracks[0].spans) {
    CHECK(s.begin == now);
    now = s.end;
  }
  CHECK(o.tracks[0].memory.size() == 1);
}

TEST_CASE("clocks: the share of collectives that passes aside sets the time between overlap and none") {
  CHECK(run({}, true, 0).seconds == doctest::Approx(total()));
  double before = run({}, true, 1).seconds;
  for (const double hidden : {0.75, 0.5, 0.25, 0.0, -0.5}) {
    const double now = run({}, true, hidden).seconds;
    CHECK(now > before);
    before = now;
  }
  CHECK(run({}, false, 0.5).seconds == run({}, false).seconds);
}

TEST_CASE("clocks: a late device makes those of its group wait, and no others") {
  gs::faults late;
  late.stragglers = {{4, 1, 10}};
  const auto o = run(late);
  REQUIRE(o.tracks.size() == 3);
  CHECK(o.tracks[0].devices == std::vector<int>{0, 1, 2});
  CHECK(o.tracks[1].devices == std::vector<int>{3, 5});
  CHECK(o.tracks[2].devices == std::vector<int>{4});
  CHECK(o.tracks[0].spans.back().end == total());
  CHECK(o.tracks[0].wait == 0);
  for (std::size_t k : {1u, 2u}) {
    CHECK(o.tracks[k].wait == 10);  // for the late device, or before its own start
    CHECK(o.tracks[k].spans.back().end == total() + 10);
  }
}

TEST_CASE("clocks: of too many different devices those are recorded that are slow by themselves, and the first ones") {
  gs::faults slow;
  slow.stragglers = {{5, 1.5}};
  slow.jitter = 0.1;
  const auto o = run(slow);
  REQUIRE(o.tracks.size() == 3);
  CHECK(o.tracks[0].devices == std::vector<int>{0});
  CHECK(o.tracks[1].devices == std::vector<int>{1});
  CHECK(o.tracks[2].devices == std::vector<int>{5});
}

TEST_CASE("clocks: a collective is as slow as the slowest of its group") {
  gs::faults slow;
  slow.stragglers = {{4, 3}};
  const auto o = run(slow);
  CHECK(o.seconds == doctest::Approx(3 * total()));
  REQUIRE(o.tracks.size() == 3);
  CHECK(o.tracks[0].devices == std::vector<int>{0, 1, 2});  // the group without the straggler
  double collectives = 0;
  for (const gs::step_record& s : steps()) collectives += s.bytes_received > 0 ? s.seconds : 0;
  CHECK(o.tracks[0].communicate == doctest::Approx(collectives));
  for (const gs::device_track& t : {o.tracks[1], o.tracks[2]}) CHECK(t.communicate == doctest::Approx(3 * collectives));
}

TEST_CASE("clocks: aside, collectives take the time that is left between what they need and who needs them") {
  const auto o = run({}, true);
  CHECK(o.seconds < total());
  CHECK(o.seconds >= 4);
  for (const double collective : {1.0, 2.0, 5.0})  // collectives run one after the other on the network
    for (const double hidden : {1.0, 0.5, 0.0}) {
      double free = 0;
      int collectives = 0;
      const auto times = run({}, true, hidden, collective);
      for (const gs::time_span& s : times.tracks[0].spans) {
        if (s.what != gs::activity::collective) continue;
        CHECK(s.begin >= free);
        CHECK(s.end == doctest::Approx(s.begin + collective));
        free = s.end;
        ++collectives;
      }
      CHECK(collectives == 2);
    }
  gs::faults late;
  late.stragglers = {{4, 1, 10}};
  CHECK(run(late, true).seconds == o.seconds + 10);
}

TEST_CASE("clocks: a group without the dead device does not wait, the other says who does") {
  gs::faults dead;
  dead.dead_devices = {1};
  CHECK_THROWS_AS(run(dead), gs::error);
  try {
    run(dead);
  } catch (const gs::error& e) {
    CHECK(std::string(e.what()).find("devices 0, 2 waited 60 s for device 1, which is dead") != std::string::npos);
  }
}
