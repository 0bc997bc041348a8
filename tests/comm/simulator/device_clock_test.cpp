// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/comm/simulator/device_clock.hpp>

#include <gshard/plan.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gs = gshard;
using gs::none, gs::op, gs::P;

namespace {

// Two sums over "x" of products, between which another product is made.
inline constexpr auto model = [](auto&, auto x, auto w) {
  const auto whole = gs::annotate<P<none, none>>(gs::einsum<"AB,BC->AC">(x, w));
  return std::tuple{whole, gs::einsum<"AB,BC->A">(gs::relu(x), w)};
};
using program = gs::program<model, gs::mesh<gs::axis<"y">, gs::axis<"x">>, gs::in<"AB", P<none, "x">>, gs::in<"BC", P<"x", none>>,
                            gs::combine_up_to<0>>;

/// Every local step takes 1 s, every collective 2.
std::vector<gs::step_record> steps() {
  std::vector<gs::step_record> list;
  for (std::size_t i = 0; i < program::plan.steps.size(); ++i) {
    const op kind = program::plan.steps[i].kind;
    gs::step_record s;
    s.step = std::int32_t(i);
    s.bytes_received = gs::traits(kind).collective;
    s.seconds = gs::traits(kind).alias ? 0 : gs::traits(kind).collective ? 2 : 1;
    list.push_back(s);
  }
  return list;
}
struct outcome {
  std::vector<gs::device_track> tracks;
  double last;
};
outcome run(const gs::faults& broken = {}, bool overlap = false) {
  const std::vector<int> extents{2, 3};
  gs::detail::device_clocks clocks(program::plan, extents, broken, overlap);
  const auto list = steps();
  outcome o{clocks.run(list, std::vector<std::int64_t>(list.size(), 7)), 0};
  o.last = clocks.last();
  return o;
}
double total() {
  double sum = 0;
  for (const gs::step_record& s : steps()) sum += s.seconds;
  return sum;
}

}  // namespace

TEST_CASE("clocks: like devices have one track, on which steps follow one another") {
  const outcome o = run();
  REQUIRE(o.tracks.size() == 1);
  CHECK(o.tracks[0].devices == std::vector<int>{0, 1, 2, 3, 4, 5});
  CHECK(o.last == total());
  double now = 0;
  for (const gs::time_span& s : o.tracks[0].spans) {
    CHECK(s.begin == now);
    now = s.end;
  }
  CHECK(o.tracks[0].memory.size() == 1);
}

TEST_CASE("clocks: a late device makes those of its group wait, and no others") {
  gs::faults late;
  late.stragglers = {{4, 1, 10}};
  const outcome o = run(late);
  REQUIRE(o.tracks.size() == 6);
  for (const gs::device_track& t : o.tracks) {
    const int device = t.devices[0];
    CHECK(t.wait == (device < 3 ? 0 : 10));
    CHECK(t.spans.back().end == total() + (device < 3 ? 0 : 10));
  }
}

TEST_CASE("clocks: aside, collectives take the time that is left between what they need and who needs them") {
  const outcome o = run({}, true);
  CHECK(o.last < total());
  CHECK(o.last >= 4);
  gs::faults late;
  late.stragglers = {{4, 1, 10}};
  CHECK(run(late, true).last == o.last + 10);
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
