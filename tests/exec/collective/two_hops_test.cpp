// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/collective/two_hops.hpp>

#include <gshard/exec/collective/make_collective.hpp>

#include "on_devices.hpp"

namespace gs = gshard;
namespace op = gs::op;

namespace {

/// A hop that writes its calls to a log. It fails if told to.
struct hop final : gs::detail::collective {
  hop(std::string& l, char n, bool f) : log(l), name(n), fails(f) {}
  void start() override { (log += name) += 's'; }
  bool advance() override { return !((log += name) += 'a').empty(); }
  void finish() override {
    (log += name) += 'f';
    if (fails) throw gs::error(std::string(1, name) + " failed");
  }
  void drop() override { (log += name) += 'd'; }
  std::string& log;
  char name;
  bool fails;
};

}  // namespace

TEST_CASE("two hops: the second runs when the first is complete, after an error as well") {
  for (const bool fails : {false, true}) {
    std::string log;
    gs::detail::two_hops step(std::make_unique<hop>(log, '1', fails), std::make_unique<hop>(log, '2', false));
    step.start();
    CHECK(step.advance());
    if (fails) CHECK_THROWS_WITH_AS(step.finish(), "1 failed", gs::error);
    else step.finish();
    CHECK(log == "1s1a1f2s2f");
    log.clear();
    step.start();
    step.drop();
    CHECK(log == "1s1d");
  }
}

TEST_CASE("two hops: replicas on a node receive a share each, and pass it on within the node") {
  const on_devices::cluster c({2, 2}, {0, 0, 1, 1});
  on_devices::matrix in(c, {8, 6}, {0, -1}), out(c, {8, 6}, {-1, -1});
  in.set(in.numbers([](std::size_t) { return 4; }));
  const gs::detail::step_moves moves = gs::detail::step_moves(op::all_gather, c.on, 1, {{in.value, out.value}}).spread_over_replicas();
  REQUIRE(moves.has_hops());
  const auto step = gs::detail::make_gather(moves, std::make_shared<gs::detail::collective_room>(), false);
  REQUIRE(dynamic_cast<gs::detail::two_hops*>(step.get()) != nullptr);
  on_devices::check(c, *step, out, 4, out.value.bytes(0) - in.value.bytes(0));
  c.devices->reset_received();
  step->start();
  step->finish();
  std::int64_t between_nodes = 0;
  for (const gs::traffic& t : c.devices->received()) between_nodes += t.between_nodes;
  CHECK(between_nodes == 8 * 6 * 4);
}
