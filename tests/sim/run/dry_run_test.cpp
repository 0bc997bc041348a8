// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/run/dry_run.hpp>

#include <gshard/core/program/program.hpp>
#include <gshard/moe/layer/moe.hpp>
#include <gshard/ops/loop/loop.hpp>
#include <gshard/train/adam.hpp>

#include "../../complaint.hpp"
#include "../../exec/planner.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::none, gs::P;

namespace {

/// Two MoE layers and their update.
inline constexpr auto step = [](auto& m, auto x, auto mask, auto rate) {
  auto y = x;
  for (int i = 0; i < 2; ++i) y = y + gs::nn::moe<"expert">(m.scope(i), y, mask).y;
  const auto loss = gs::mean(y * y);
  gs::adam{}.minimize(m, loss + m.auxiliary(), rate);
  return loss;
};
using mesh = gs::mesh<gs::axis<"expert">>;
gs::plan_view the_plan() {
  return planned::plan_of<gs::program<step, mesh, gs::in<"GSM", P<"expert", none, none>>, gs::in<"GS", P<"expert", none>>, gs::in<"">>>();
}
gs::extents sizes(int devices, std::int64_t tokens = 64, std::int64_t experts = 0) {
  return the_plan().bind({{'G', devices}, {'S', tokens}, {'M', 32}, {'E', experts ? experts : devices}, {'F', 128}},
                               std::array{devices});
}
constexpr gs::machine core{1e12, 1e11, 1e10, 1e-6};

gs::run_record run(int devices, const gs::dry_run_options& o = {}) { return gs::dry_run(the_plan(), sizes(devices), core, core, o); }

}  // namespace

TEST_CASE("dry run: steps one after the other, each as long as arithmetic, memory or network takes") {
  const gs::run_record r = run(8);
  CHECK(r.axes == std::vector<std::string>{"expert"});
  CHECK(r.extents == std::vector<int>{8});
  REQUIRE(r.steps.size() == the_plan().steps.size());
  double sum = 0, parts = 0;
  for (const gs::step_record& s : r.steps) {
    CHECK(s.seconds == std::max({s.arithmetic, s.memory, s.network}));
    sum += s.seconds;
  }
  for (const double p : r.parts) parts += p;
  CHECK(r.seconds == doctest::Approx(sum));
  CHECK(r.seconds == doctest::Approx(parts));
  REQUIRE(r.tracks.size() == 1);
  CHECK(r.tracks[0].devices.size() == 8);
  CHECK(r.tracks[0].wait == 0);
  CHECK(r.tracks[0].compute + r.tracks[0].communicate == doctest::Approx(sum));
  CHECK(r.parts[std::size_t(gs::step_part::dispatch_combine)] > 0);
  CHECK(r.parts[std::size_t(gs::step_part::moe_feed_forward)] > 0);
  CHECK(r.parts[std::size_t(gs::step_part::attention)] == 0);
}

TEST_CASE("dry run: the bytes of the record are those of the plan") {
  const gs::run_record r = run(8);
  std::int64_t bytes = 0;
  for (const gs::step_record& s : r.steps) bytes += s.bytes_received;
  CHECK(bytes == the_plan().bytes_received(sizes(8)));
}

TEST_CASE("dry run: collectives that go on aside only make it shorter, and nothing reads what has not come") {
  gs::dry_run_options aside;
  aside.overlap = true;
  const gs::run_record one_by_one = run(8), r = run(8, aside);
  CHECK(r.seconds <= one_by_one.seconds);
  CHECK(r.seconds >= r.tracks[0].communicate);
  CHECK(r.seconds >= r.tracks[0].compute);
  std::vector<double> made(the_plan().values.size(), 0.0);  // by root
  const auto root = [](std::int32_t v) { return std::size_t(the_plan().lifetimes[std::size_t(v)].root); };
  for (const gs::time_span& s : r.tracks[0].spans) {
    if (s.what == gs::activity::wait) continue;
    const gs::node& n = the_plan().steps[std::size_t(r.steps[std::size_t(s.row)].step)];
    for (int i = 0; i < n.inputs; ++i) CHECK(s.begin >= made[root(n.input(i))]);
    for (int o = 0; o < n.outputs; ++o) made[root(n.output(o))] = s.end;
  }
}

TEST_CASE("dry run: a span is of the row that ran then, also of a step that runs again or goes on aside") {
  gs::dry_run_options o;
  o.activations = gs::recompute::always;
  for (const bool overlap : {false, true}) {
    CAPTURE(overlap);
    o.overlap = overlap;
    const gs::run_record r = run(8, o);
    std::vector<int> spans(r.steps.size());
    double again = 0;
    for (const gs::time_span& s : r.tracks[0].spans) {
      if (s.what == gs::activity::wait) continue;
      const gs::step_record& ran = r.steps[std::size_t(s.row)];
      CHECK(s.end - s.begin == doctest::Approx(ran.seconds));
      CHECK((s.what == gs::activity::collective) == (ran.bytes_received > 0));
      if (ran.recomputed) again += s.end - s.begin;
      ++spans[std::size_t(s.row)];
    }
    double expected = 0;
    for (std::size_t row = 0; row < spans.size(); ++row) {
      CHECK(spans[row] == (r.steps[row].seconds > 0));
      if (r.steps[row].recomputed) expected += r.steps[row].seconds;
    }
    CHECK(expected > 0);
    CHECK(again == doctest::Approx(expected));
  }
}

TEST_CASE("dry run: what a device holds does not fit, and the error says what it is") {
  gs::dry_run_options small;
  const gs::run_record fits = run(8);
  small.memory = fits.memory.peak;
  CHECK_NOTHROW(run(8, small));
  small.memory = fits.memory.bytes[std::size_t(gs::memory_kind::sharded_weight)];
  const std::string said = complaint([&] { run(8, small); });
  CAPTURE(said);
  CHECK(said.starts_with("device 0 runs out of memory in step "));
  CHECK(said.find("The largest live tensors: ") != said.npos);
  CHECK(said.find(".wi (") != said.npos);
  small.report_only = true;
  CHECK(run(8, small).memory.peak > small.memory);
}

TEST_CASE("dry run: the price does not grow with the devices, and neither does what it says of one") {
  const gs::run_record few = run(8), many = run(2048);
  CHECK(few.steps.size() == many.steps.size());
  CHECK(few.tracks[0].spans.size() == many.tracks[0].spans.size());
  CHECK(few.memory.bytes[std::size_t(gs::memory_kind::sharded_weight)] == many.memory.bytes[std::size_t(gs::memory_kind::sharded_weight)]);
}

TEST_CASE("dry run: others wait for a slow device, and nobody for a fast one") {
  gs::dry_run_options slow;
  slow.faults.stragglers = {{3, 5.0}};
  const gs::run_record r = run(8, slow), even = run(8);
  CHECK(r.seconds > even.seconds);
  CHECK(r.seconds == doctest::Approx(5 * even.seconds));  // in collectives as well
  for (const gs::device_track& t : r.tracks) CHECK((t.wait > 0) == (t.devices[0] != 3));
  slow.faults.stragglers = {{3, 0.5}};
  CHECK(run(8, slow).seconds == doctest::Approx(even.seconds));
}

TEST_CASE("dry run: jitter is the same for the same seed, and lengthens a run by less than its share") {
  gs::dry_run_options o;
  o.faults.jitter = 0.2;
  const double once = run(8, o).seconds, even = run(8).seconds;
  CHECK(once == run(8, o).seconds);
  CHECK(once > even);
  CHECK(once < 1.2 * even);
  o.faults.seed = 2;
  CHECK(run(8, o).seconds != once);
}

TEST_CASE("dry run: the parts are what the first track does, faults and all") {
  gs::dry_run_options o;
  o.faults.stragglers = {{0, 2.0}};
  for (const bool overlap : {false, true}) {
    o.overlap = overlap;
    const gs::run_record r = run(8, o);
    double sum = 0;
    for (const double part : r.parts) sum += part;
    CHECK(sum == doctest::Approx(r.tracks[0].compute + r.tracks[0].communicate));
    CHECK(sum > 1.9 * run(8).seconds);
  }
}

TEST_CASE("dry run: a torus that is laid out for another mesh is not taken") {
  gs::torus t;
  t.dims = 2;
  t.extents = {4, 2, 1};
  const auto problem = [&](const gs::torus_mesh& m) {
    return complaint([&] { gs::dry_run(the_plan(), sizes(8), core, m); }) +
           complaint([&] { gs::dry_run(the_plan(), sizes(8), core, gs::faulty_torus(m, {})); });
  };
  CHECK(problem(gs::torus_mesh(t)).empty());
  for (const gs::torus_mesh& m : {gs::torus_mesh(t, {2, 4}), gs::torus_mesh(t, {3}), gs::torus_mesh(t, {}).add({{0}, {0, 2, 2}})})
    CHECK(problem(m).starts_with("a plan for a mesh of "));
  t.extents = {32, 32, 1};
  CHECK(!problem(gs::torus_mesh(t)).empty());
}

TEST_CASE("dry run: a device that waits for a dead one gives up with an error") {
  gs::dry_run_options o;
  o.faults.dead_devices = {3};
  o.faults.timeout = 7;
  const std::string said = complaint([&] { run(8, o); });
  CAPTURE(said);
  CHECK(said.starts_with("step "));
  CHECK(said.find(" in \"MoE feed-forward\": devices") != said.npos);
  CHECK(said.ends_with(": devices 0, 1, 2, 4, 5, 6, 7 waited 7 s for device 3, which is dead"));
}

TEST_CASE("dry run: the last shard of an uneven dim is padding") {
  const auto padding = [](std::int64_t experts) {
    return gs::dry_run(the_plan(), sizes(8, 64, experts), core, core).memory.padding;
  };
  CHECK(padding(16) == 0);
  CHECK(padding(17) > 0);
}

TEST_CASE("dry run: a piece of hardware says what it is and what was assumed, and its memory is the limit") {
  gs::dry_run_options o;
  o.links = true;
  const gs::run_record r = gs::dry_run(the_plan(), sizes(64), gs::parse_hardware("tpu-v3:8x4"), o);
  CHECK(r.network == "tpu-v3:8x4");
  CHECK(r.chips == std::vector<int>{8, 4});
  CHECK(r.cores_per_chip == 2);
  CHECK(r.memory.limit == std::int64_t(16) << 30);
  CHECK(r.links.size() == 4 * 32);
  const auto says = [&](const char* words) {
    return std::any_of(r.assumptions.begin(), r.assumptions.end(), [&](const std::string& s) { return s.find(words) != s.npos; });
  };
  CHECK(says("fitted, not physical"));
  CHECK(says("products run at 85 % of the peak"));
  CHECK(says("collectives do not overlap with computation"));
}

TEST_CASE("dry run: a slow link makes collectives slower, and a cluster has none") {
  gs::dry_run_options o;
  o.faults.links = {{0, 1, 0.5}};
  const gs::hardware on = gs::parse_hardware("tpu-v3:8x4");
  const gs::run_record r = gs::dry_run(the_plan(), sizes(64), on, o), even = gs::dry_run(the_plan(), sizes(64), on);
  CHECK(r.tracks[0].compute == doctest::Approx(even.tracks[0].compute));
  CHECK(r.tracks[0].communicate > even.tracks[0].communicate);
  CHECK(complaint([&] { gs::dry_run(the_plan(), sizes(64), gs::parse_hardware("aries:64"), o); }) ==
        "faults: aries:64 has no links between chips");
  CHECK(gs::dry_run(the_plan(), sizes(64), gs::parse_hardware("aries:64")).chips.empty());
}

TEST_CASE("dry run: an efficiency is a share above 0 and at most 1") {
  for (double gs::efficiency::*which : {&gs::efficiency::products, &gs::efficiency::batched_products, &gs::efficiency::memory,
                                        &gs::efficiency::all_to_all})
    for (const double wrong : {0.0, -1.0, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
      gs::dry_run_options o;
      o.share.*which = wrong;
      CHECK(complaint([&] { run(8, o); }).starts_with("efficiency: "));
    }
  gs::dry_run_options o;
  o.share.products = -1;
  CHECK(complaint([&] { run(8, o); }) == "efficiency: products is a share above 0 and at most 1, not -1.000000");
}

TEST_CASE("dry run: a network without links has none that can have faults") {
  gs::dry_run_options o;
  o.faults.links = {{0, 1, 0.5}};
  CHECK(complaint([&] { run(8, o); }) == "faults: links of a torus_mesh have faults, this network has none");
}

TEST_CASE("dry run: a torus_mesh as the network is priced as hardware is, faults, links and all") {
  gs::dry_run_options o;
  o.links = true;
  const gs::hardware on = gs::parse_hardware("tpu-v3:8x4");
  const gs::torus_mesh mesh = on.lay(std::array{64});
  const gs::run_record of_hardware = gs::dry_run(the_plan(), sizes(64), on, o);
  const gs::run_record r = gs::dry_run(the_plan(), sizes(64), on.device, mesh, o);
  CHECK(r.seconds == of_hardware.seconds);
  CHECK(r.chips == of_hardware.chips);
  CHECK(r.cores_per_chip == 2);
  CHECK(r.chip_of.empty());
  REQUIRE(r.links.size() == of_hardware.links.size());
  CHECK(r.links[5].bytes == of_hardware.links[5].bytes);
  o.faults.links = {{0, 1, 0.5}};
  CHECK(gs::dry_run(the_plan(), sizes(64), on.device, mesh, o).seconds > r.seconds);
  o.faults.links = {{0, 9, 0.5}};
  CHECK(complaint([&] { gs::dry_run(the_plan(), sizes(64), on.device, mesh, o); }) ==
        "faults: link from chip 0 to chip 9 is not a link of the torus");
}

TEST_CASE("dry run: a mesh laid over the hardware by hand says where devices are and keeps the record's sources") {
  gs::dry_run_options o;
  o.links = true;
  const gs::hardware on = gs::parse_hardware("tpu-v3:8x4");
  const int cores = gs::torus_part::cores;
  const gs::torus_mesh columns = gs::torus_mesh(on.topology, {}).add({{1}, {0}, {cores}});
  const gs::run_record r = gs::dry_run(the_plan(), sizes(64), on, columns, o);
  CHECK(r.network == "tpu-v3:8x4");
  CHECK(!r.source.empty());
  CHECK(!r.links.empty());
  REQUIRE(r.chip_of.size() == 64);
  CHECK(r.chip_of[1] == 0);
  CHECK(r.chip_of[2] == 4);
  const gs::run_record by_row = gs::dry_run(the_plan(), sizes(64), on, on.lay(std::array{64}), o);
  CHECK(by_row.chip_of.empty());
  CHECK(by_row.seconds == gs::dry_run(the_plan(), sizes(64), on, o).seconds);
  CHECK(by_row.assumptions == gs::dry_run(the_plan(), sizes(64), on, o).assumptions);
}

TEST_CASE("dry run: a mesh of other devices, over another torus, or not over all of it, is no place for a plan") {
  const gs::hardware on = gs::parse_hardware("tpu-v3:8x4"), other = gs::parse_hardware("tpu-v3:4x4");
  const auto said = [&](const gs::hardware& h, const gs::torus_mesh& mesh) {
    return complaint([&] { gs::dry_run(the_plan(), sizes(64), h, mesh); });
  };
  CHECK(said(on, other.lay(std::array{32})) == "the mesh is mapped to another torus than that of tpu-v3:8x4");
  CHECK(said(other, other.lay(std::array{32})) ==
        "a plan for a mesh of 64 devices is mapped to a torus as one of 32");
  CHECK(said(on, gs::torus_mesh(on.topology, {}).add({{1}, {1}, {1}}))
            .ends_with("which does not give each of its devices a place of its own"));
  CHECK(said(gs::parse_hardware("aries:64"), on.lay(std::array{64})).starts_with("aries:64 is a cluster"));
}

namespace {
// Weights are sharded over the data axis, and gathered before their use.
inline constexpr auto gathered_layers = [](auto& m, auto x) {
  auto y = x;
  for (int i = 0; i < 4; ++i)
    y = gs::einsum<"BM,MN->BN">(y, gs::annotate<P<none, none>>(m.scope(i).param("w", "MM", P<"x", none>{}, gs::init::fan_in("M"))));
  return y;
};
using gathered = gs::program<gathered_layers, gs::mesh<gs::axis<"x">>, gs::in<"BM", P<"x", none>>>;
}  // namespace

TEST_CASE("dry run: with overlap weights arrive while the product before theirs computes, no earlier, and take memory meanwhile") {
  const gs::plan_view plan = gathered::plan;
  const gs::extents e = plan.bind({{'B', 1 << 14}, {'M', 1 << 11}}, std::array{8});
  gs::dry_run_options options;
  const gs::run_record in_turn = gs::dry_run(plan, e, gs::machine{}, gs::machine{}, options);
  options.overlap = true;
  const gs::run_record r = gs::dry_run(plan, e, gs::machine{}, gs::machine{}, options);
  CHECK(r.seconds < in_turn.seconds);
  CHECK(r.memory.peak == in_turn.memory.peak + (std::int64_t(4) << 22));
  std::vector<gs::time_span> gathers, products;
  for (const gs::time_span& s : r.tracks[0].spans) {
    if (s.what == gs::activity::collective) gathers.push_back(s);
    if (s.what == gs::activity::compute) products.push_back(s);
  }
  REQUIRE(gathers.size() == 4);
  REQUIRE(products.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(products[i].begin >= gathers[i].end);
    if (i > 0) CHECK(gathers[i].begin >= products[i - 1].begin);
  }
}

TEST_CASE("dry run: one iteration of a loop is run, which the record states") {
  static constexpr auto doubling = [](auto&, auto x) {
    return gs::while_loop([](gs::symbol s) { return gs::sum(s); }, [](gs::symbol s) { return s + s; }, x);
  };
  const gs::plan_view plan = planned::plan_of<gs::program<doubling, mesh, gs::in<"AB", P<"expert", none>>>>();
  const auto says = [](const gs::run_record& r) {
    return std::any_of(r.assumptions.begin(), r.assumptions.end(),
                       [](const std::string& s) { return s.starts_with("one iteration of each loop"); });
  };
  CHECK(says(gs::dry_run(plan, plan.bind({{'A', 8}, {'B', 4}}, std::array{8}), core, core)));
  CHECK(!says(run(8)));
}

TEST_CASE("dry run: extents that are missing, negative or too large are errors") {
  static constexpr auto product = [](auto&, auto x, auto w) { return gs::einsum<"AB,BC->AC">(x, w); };
  const gs::plan_view plan = planned::plan_of<gs::program<product, mesh, gs::in<"AB", P<"expert", none>>, gs::in<"BC">>>();
  const auto error_of = [&](const gs::dims& sizes, std::vector<int> devices) {
    return complaint([&] { gs::dry_run(plan, plan.bind(sizes, devices), core, core); });
  };
  CHECK(error_of({{'A', 8}, {'B', 8}, {'C', 4}}, {4}).empty());
  CHECK(error_of({{'A', 8}, {'B', 8}}, {4}) == "dry run: dim 'C' is given no extent");
  CHECK(error_of({{'A', 8}, {'B', 8}, {'C', 4}}, {}) == "dry run: axis \"expert\" is given no extent");
  CHECK(error_of({{'A', 8}, {'B', -4}, {'C', 4}}, {4}) == "dry run: dim 'B' is given the extent -4");
  CHECK(error_of({{'A', 8}, {'B', -1}, {'C', 4}}, {4}) == "dry run: dim 'B' is given the extent -1");
  CHECK(error_of({{'A', 8}, {'B', 8}, {'C', 4}}, {-4}) == "dry run: axis \"expert\" is given the extent -4");
  CHECK(error_of({{'A', 1LL << 40}, {'B', 1LL << 40}, {'C', 4}}, {4}) ==
        "dry run: the input AB has 1099511627776 x 1099511627776 elements, more than can be counted");
}

TEST_CASE("dry run: a scan has as many iterations as its rows, its gradient too") {
  static constexpr auto gradient_of_scan = [](auto&, auto xs, auto h, auto w) {
    const auto body = [w](auto, auto now, auto x) { return gs::einsum<"AC,BC->AB">(gs::einsum<"AB,BC->AC">(now, w), w) + x; };
    return gs::gradients(gs::sum(gs::scan(body, h, xs)), std::array{w})[0];
  };
  const gs::plan_view plan = planned::plan_of<gs::program<gradient_of_scan, mesh, gs::in<"TAB", P<none, "expert", none>>,
                                                                gs::in<"AB", P<"expert", none>>, gs::in<"BC">>>();
  const auto rows = [&](std::int64_t t) {
    const gs::run_record r =
        gs::dry_run(plan, plan.bind({{'T', t}, {'A', 4096}, {'B', 512}, {'C', 512}}, std::array{8}), core, core);
    CHECK(std::ranges::any_of(r.assumptions, [](const std::string& s) { return s.starts_with("one iteration of each loop"); }) ==
          (t > 1000));
    const auto products = std::ranges::count_if(
        r.steps, [&](const gs::step_record& s) { return plan.steps[std::size_t(s.step)].kind == gs::op::einsum; });
    return std::pair(std::int64_t(products), r.seconds);
  };
  const auto [one, seconds_of_one] = rows(1);
  const auto [nine, seconds_of_nine] = rows(9);
  CHECK(one > 1);
  CHECK(nine == 9 * one);
  CHECK(rows(1 << 20).first == one);  // all would be too many
  CHECK(seconds_of_nine > 5 * seconds_of_one);
}
