// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/run/run_clock.hpp>

#include <gshard/all_kernels.hpp>
#include <gshard/core/program/program.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/moe/layer/moe.hpp>
#include <gshard/ops/loop/loop.hpp>
#include <gshard/ops/loop/scan.hpp>
#include <gshard/train/adam.hpp>

#include "../../complaint.hpp"
#include "../../exec/planner.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"data">, gs::axis<"expert">>;
constexpr auto both = gs::axes<"data", "expert">;

/// An MoE layer with groups over both axes, and its update.
inline constexpr auto learn = [](auto& m, auto x, auto mask, auto rate) {
  const auto layer = gs::nn::moe<"expert">(m.scope("moe"), x, mask, {.routing = {.k = 2, .slots = gs::capacity{2}}});
  const auto loss = gs::mean(layer.y * layer.y);
  gs::adam{}.minimize(m, loss + 0.01 * m.auxiliary(), rate);
  return loss;
};
gs::plan_view learning() {
  return planned::plan_of<gs::program<learn, mesh, gs::in<"GSM", P<both, none, none>>, gs::in<"GS", P<both, none>>, gs::in<"">>>();
}
/// A loop with a run-time count, a sum over devices in each iteration, and one after the loop.
inline constexpr auto turning = [](auto&, auto x, auto turns) {
  return gs::sum(gs::repeat(turns, [=](auto t) { return t + gs::sum(x * x); }, gs::sum(x)) * x);
};
gs::plan_view looping() {
  return planned::plan_of<gs::program<turning, mesh, gs::in<"A", P<"data">>, gs::in<"", P<>, std::int32_t>>>();
}
/// One operand is gathered while the other is sharded.
inline constexpr auto product = [](auto&, auto x, auto y) { return gs::annotate<P<none, "expert">>(gs::einsum<"AW,VW->AV">(x, y)); };
gs::plan_view overlapping() {
  return planned::plan_of<gs::program<product, mesh, gs::in<"AW", P<none, "expert">>, gs::in<"VW", P<none, none>>>>();
}
/// A scan over rows that are computed before it.
inline constexpr auto scanned = [](auto&, auto xs, auto start, auto w) {
  const auto step = [w](auto, auto now, auto x) { return gs::einsum<"AV,VW->AW">(gs::einsum<"AW,VW->AV">(now + x, w), w); };
  return gs::scan(step, start, xs + xs);
};
gs::plan_view scanning() {
  return planned::plan_of<gs::program<scanned, mesh,
      gs::in<"TAW", P<none, "data", none>>, gs::in<"AW", P<"data", none>>, gs::in<"VW">>>();
}
const gs::dims sizes{{'T', 9}, {'G', 24}, {'S', 16}, {'M', 32}, {'E', 24}, {'F', 48}, {'A', 96}, {'V', 96}, {'W', 96}};

/// A program on simulated devices, with inputs that are equal on any mesh.
struct bound {
  gs::any_cluster on;
  gs::executor run;

  bound(const gs::plan_view& p, const std::vector<int>& devices)
      : on(p.mesh, std::make_shared<gs::simulated>(devices)), run(p, gs::all_kernels, on, sizes, gs::parameter_store(on, 5)) {
    turns(3);
  }
  void turns(std::int32_t n) {
    for (std::size_t i = 0; i < run.plan().inputs.size(); ++i) {
      const gs::detail::bound_value& to = run.input(i);
      for (std::size_t d = 0; d < to.places.size(); ++d)
        gs::kernel::for_each_element(to.places[d], [&](std::size_t global, std::size_t local) {
          if (to.type == gs::dtype::i32) to.as<std::int32_t>(d)[local] = n;
          else if (to.rank() == 0) to.as<float>(d)[local] = 1e-2f;
          else to.as<float>(d)[local] = to.rank() == 2 ? float(global % 7 != 0) : float(std::sin(double(global * 37 % 1009)));
        });
    }
  }
  gs::run_record dry(const gs::hardware& hardware, gs::dry_run_options o = {}) const {
    o.activations = gs::recompute::never;
    return gs::dry_run(run.plan(), run.sizes(), hardware, o);
  }
  /// The bytes of all parameters on all devices.
  std::vector<std::vector<std::byte>> parameters() const {
    std::vector<std::vector<std::byte>> all;
    for (const auto& [name, e] : run.store().entries())
      for (std::size_t d = 0; d < e.value.data.size(); ++d)
        all.emplace_back(e.value.data[d], e.value.data[d] + e.value.bytes(d));
    return all;
  }
};

const gs::hardware eight = gs::parse_hardware("tpu-v3:2x2");
const std::vector<int> two_by_four{2, 4};

gs::dry_run_options with(const gs::faults& broken, bool overlap = false) {
  gs::dry_run_options o;
  o.faults = broken;
  o.overlap = overlap;
  return o;
}
void check_same(const gs::run_record& r, const gs::run_record& expected) {
  CHECK(r.seconds == expected.seconds);
  CHECK(r.seconds > 0);
  CHECK(r.parts == expected.parts);
  CHECK(r.memory.peak == expected.memory.peak);
  CHECK(r.memory.bytes == expected.memory.bytes);
  CHECK(r.network == expected.network);
  CHECK(r.assumptions == expected.assumptions);
  REQUIRE(r.steps.size() == expected.steps.size());
  for (std::size_t i = 0; i < r.steps.size(); ++i) CHECK(r.steps[i].step == expected.steps[i].step);
  REQUIRE(r.tracks.size() == expected.tracks.size());
  for (std::size_t k = 0; k < r.tracks.size(); ++k) {
    CHECK(r.tracks[k].devices == expected.tracks[k].devices);
    CHECK(r.tracks[k].compute == expected.tracks[k].compute);
    CHECK(r.tracks[k].communicate == expected.tracks[k].communicate);
    CHECK(r.tracks[k].wait == expected.tracks[k].wait);
    CHECK(std::ranges::equal(r.tracks[k].spans, expected.tracks[k].spans, {}, &gs::time_span::row, &gs::time_span::row));
    CHECK(r.tracks[k].memory.size() == expected.tracks[k].memory.size());
  }
}

}  // namespace

TEST_CASE("run clock: without loops, a run with numbers takes what the dry run says, whatever goes wrong") {
  bound b(learning(), two_by_four);
  gs::faults slow, shaken, link;
  slow.stragglers = {{3, 5.0, 1e-5}};
  shaken.jitter = 0.2;
  link.links = {{0, 1, 0.25}};
  for (const gs::faults& broken : {gs::faults{}, slow, shaken, link})
    for (const bool overlap : {false, true}) {
      gs::run_clock clock(b.run, eight, with(broken, overlap));
      b.run.run({});
      check_same(clock.record(), b.dry(eight, with(broken, overlap)));
      CHECK(clock.seconds() == clock.record().seconds);
    }
}

TEST_CASE("run clock: steps that are under way while others run are charged in their own place") {
  bound b(overlapping(), two_by_four);
  std::vector<std::int32_t> called, charged;
  b.run.hook = [&](const gs::node& n, bool begins) {
    if (begins) called.push_back(std::int32_t(&n - &b.run.plan().steps[0]));
  };
  gs::run_clock clock(b.run, eight);
  b.run.run({});
  check_same(clock.record(), b.dry(eight));
  for (const gs::step_record& s : clock.record().steps) charged.push_back(s.step);
  CHECK(!std::ranges::is_sorted(called));
  CHECK(std::ranges::is_sorted(charged));
  std::ranges::sort(called);
  CHECK(called == charged);
}

TEST_CASE("run clock: the measured seconds of all steps are within those of the run, and those of the last run alone") {
  bound b(learning(), two_by_four);
  gs::run_clock clock(b.run, eight);
  CHECK(clock.record().measured_seconds == 0);
  for (int runs = 0; runs < 2; ++runs) {
    b.run.run({});
    const gs::run_record r = clock.record();
    double sum = 0;
    for (const gs::step_record& s : r.steps) sum += s.measured;
    CHECK(sum > 0);
    CHECK(sum <= doctest::Approx(r.measured_seconds));
  }
}

TEST_CASE("run clock: every iteration of a loop takes time") {
  bound b(looping(), two_by_four);
  gs::run_clock clock(b.run, eight);
  std::vector<double> seconds;
  std::vector<std::int64_t> received;
  for (const std::int32_t turns : {0, 1, 2, 7}) {
    b.turns(turns);
    b.run.run({});
    const gs::run_record r = clock.record();
    seconds.push_back(r.seconds);
    received.push_back(r.received[0]);
    const auto kind_of = [&](const auto& s) { return b.run.plan().steps[std::size_t(s.step)].kind; };
    CHECK(std::ranges::count(r.steps, gs::op_ref(op::loop_end), kind_of) == turns);
    std::int64_t bytes = 0;
    for (const gs::step_record& s : r.steps) bytes += s.bytes_received;
    CHECK(bytes == r.received[0]);
    std::vector<std::int32_t> rows, expected;  // per iteration
    for (const gs::time_span& s : r.tracks[0].spans) rows.push_back(s.row);
    for (std::size_t row = 0; row < r.steps.size(); ++row)
      if (r.steps[row].seconds > 0) expected.push_back(std::int32_t(row));
    CHECK(rows == expected);
  }
  CHECK(seconds[1] > seconds[0]);
  CHECK(seconds[2] - seconds[1] == doctest::Approx(seconds[1] - seconds[0]));
  CHECK(seconds[3] - seconds[0] == doctest::Approx(7 * (seconds[1] - seconds[0])));
  CHECK(received[3] > received[0]);
  b.turns(1);
  b.run.run({});
  CHECK(clock.record().seconds == seconds[1]);
  CHECK(seconds[1] == doctest::Approx(b.dry(eight).seconds));  // one iteration of a loop, with its condition once less
}

TEST_CASE("run clock: a scan takes the time and the memory of its dry run") {
  bound b(scanning(), two_by_four);
  const gs::run_record dry = b.dry(eight);
  gs::run_clock clock(b.run, eight);
  b.run.run({});
  CHECK(clock.record().seconds == doctest::Approx(dry.seconds));
  CHECK(clock.record().memory.peak == dry.memory.peak);
  gs::dry_run_options enough, little;
  enough.memory = dry.memory.peak;
  little.memory = dry.memory.peak - 1;
  CHECK_NOTHROW(gs::run_clock(b.run, eight, enough));
  CHECK_THROWS_AS(gs::run_clock(b.run, eight, little), gs::error);
  CHECK_THROWS_AS(gs::dry_run(b.run.plan(), b.run.sizes(), eight, little), gs::error);
}

TEST_CASE("run clock: a run begins where all devices are done with the one before, and draws its own jitter") {
  bound b(learning(), two_by_four);
  gs::faults shaken;
  shaken.jitter = 0.2;
  gs::run_clock clock(b.run, eight, with(shaken));
  CHECK(clock.runs() == 0);
  CHECK(clock.seconds() == 0);
  CHECK(clock.record().tracks.size() == 1);
  double sum = 0;
  std::vector<double> each;
  for (int k = 0; k < 3; ++k) {
    b.run.run({});
    each.push_back(clock.record().seconds);
    sum += each.back();
  }
  CHECK(clock.runs() == 3);
  CHECK(clock.seconds() == sum);
  CHECK(each[0] != each[1]);
  CHECK(each[1] != each[2]);
}

TEST_CASE("run clock: others wait for a slow device, and no number changes") {
  bound even(learning(), two_by_four), uneven(learning(), two_by_four);
  gs::faults slow;
  slow.stragglers = {{3, 5.0}};
  slow.jitter = 0.1;
  gs::run_clock of_even(even.run, eight), of_uneven(uneven.run, eight, with(slow));
  for (int k = 0; k < 2; ++k) {
    even.run.run({});
    uneven.run.run({});
  }
  CHECK(even.parameters() == uneven.parameters());
  CHECK(of_uneven.seconds() > of_even.seconds());
  const gs::run_record r = of_uneven.record();
  REQUIRE(r.tracks.size() == 8);
  for (const gs::device_track& t : r.tracks)
    if (t.devices[0] != 3) CHECK(t.wait > r.tracks[3].wait);
}

TEST_CASE("run clock: a device that waits for a dead one gives up with an error, and parameters stay") {
  bound b(learning(), two_by_four);
  const auto before = b.parameters();
  gs::faults dead;
  dead.dead_devices = {6};
  dead.timeout = 7;
  std::string said;
  {
    gs::run_clock clock(b.run, eight, with(dead));
    for (int k = 0; k < 2; ++k) {
      said = complaint([&] { b.run.run({}); });
      CAPTURE(said);
      CHECK(said.starts_with("step "));
      CHECK(said.find(" in \"MoE feed-forward\"") != said.npos);
      CHECK(said.find(" waited 7 s for device 6, which is dead") != said.npos);
      CHECK(b.parameters() == before);
    }
    const gs::run_record r = clock.record();  // up to this step
    CHECK(r.steps.size() > 0);
    CHECK(r.steps.size() < b.run.plan().steps.size());
    CHECK(clock.seconds() == doctest::Approx(2 * r.seconds));
  }
  CHECK(said == complaint([&] { b.dry(eight, with(dead)); }));
  b.run.run({});
  CHECK(b.parameters() != before);
}

TEST_CASE("run clock: a hook that was there is called, and is back when the clock ends") {
  bound b(learning(), two_by_four);
  int calls = 0;
  b.run.hook = [&](const gs::node&, bool) { ++calls; };
  {
    gs::run_clock outer(b.run, eight);
    {
      gs::run_clock inner(b.run, gs::parse_hardware("aries:8"));
      b.run.run({});
      CHECK(inner.seconds() != outer.seconds());
      CHECK(inner.runs() == outer.runs());
    }
    b.run.run({});
    CHECK(outer.runs() == 2);
  }
  b.run.run({});
  CHECK(calls == 3 * 2 * int(b.run.plan().steps.size()));
}

TEST_CASE("run clock: a run that fails leaves the next one as it is") {
  bound b(learning(), two_by_four);
  gs::run_clock clock(b.run, eight);
  b.run.run({});
  const double once = clock.record().seconds;
  CHECK(complaint([&] { b.run.run({}, "an input is wrong"); }) == "an input is wrong");
  b.run.run({});
  CHECK(clock.record().seconds == once);
}

TEST_CASE("run clock: devices receive the bytes that the plan says, each of them, in every run") {
  for (const std::vector<int>& devices : {std::vector{1, 1}, {1, 4}, {4, 1}, {2, 3}, {3, 2}, {2, 4}, {1, 12}}) {
    bound b(learning(), devices);
    const int n = devices[0] * devices[1];
    gs::run_clock clock(b.run, gs::parse_hardware("aries:" + std::to_string(n)));
    const std::int64_t bytes = b.run.plan().bytes_received(b.run.sizes());
    for (int k = 0; k < 2; ++k) {
      b.run.run({});
      const gs::run_record r = clock.record();
      CHECK(r.received == std::vector<std::int64_t>(std::size_t(n), bytes));
      std::int64_t charged = 0;
      for (const gs::step_record& s : r.steps) charged += s.bytes_received;
      CHECK(charged == bytes);
    }
    CHECK((bytes > 0) == (n > 1));
  }
}

TEST_CASE("run clock: what does not fit, and faults that cannot be, are told before anything runs") {
  bound b(learning(), two_by_four);
  gs::dry_run_options small;
  small.memory = 1000;
  CHECK(complaint([&] { gs::run_clock(b.run, eight, small); }).starts_with("device 0 runs out of memory in step "));
  small.report_only = true;
  CHECK(complaint([&] { gs::run_clock(b.run, eight, small); }).empty());
  gs::faults broken;
  broken.dead_devices = {8};
  CHECK(complaint([&] { gs::run_clock(b.run, eight, with(broken)); }) == "faults: dead device 8 is not one of 8 devices");
  CHECK(!b.run.hook);
}
