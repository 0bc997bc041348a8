// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/collective/exchange_in_rounds.hpp>

#include "on_devices.hpp"

#include <string>

namespace gs = gshard;
namespace op = gs::op;

namespace {

void check(gs::op_ref kind, std::pair<std::int64_t, std::int64_t> extents, std::pair<int, int> from, std::pair<int, int> to, bool early,
           std::int64_t received) {
  const on_devices::cluster c({3});
  on_devices::matrix in(c, extents, from), out(c, extents, to);
  in.set(in.numbers([](std::size_t) { return 3; }));
  const gs::detail::step_moves moves(kind, c.on, 1, {{in.value, out.value}});
  gs::detail::exchange_in_rounds step(blocks_of_exchange(moves, std::make_shared<gs::detail::collective_room>(), false), early);
  on_devices::check(c, step, out, 3, received);
  CHECK(c.devices->started > 0);
}

}  // namespace

TEST_CASE("exchange in rounds: in one round or several, with uneven and empty shards, in place of an all_to_all or an all_gather") {
  for (const bool early : {false, true}) {
    check(op::all_to_all, {7, 5}, {0, -1}, {-1, 0}, early, 4 * 4 * 2);
    check(op::all_to_all, {2, 6}, {-1, 0}, {0, -1}, early, 4 * 4);
    check(op::all_to_all, {900, 700}, {0, -1}, {-1, 0}, early, 4 * 600 * 234);
    check(op::all_gather, {7, 5}, {-1, 0}, {-1, -1}, early, 4 * 7 * 3);
    check(op::all_gather, {900, 700}, {-1, 0}, {-1, -1}, early, 4 * 900 * 466);
  }
}

TEST_CASE("exchange in rounds: an error of a message is thrown after all messages") {
  const on_devices::cluster c({2});
  on_devices::matrix in(c, {900, 700}, {0, -1}), out(c, {900, 700}, {-1, 0});
  const gs::detail::step_moves moves(op::all_to_all, c.on, 1, {{in.value, out.value}});
  gs::detail::exchange_in_rounds step(blocks_of_exchange(moves, std::make_shared<gs::detail::collective_room>(), false), false);
  c.devices->fails = "x";
  step.start();
  CHECK_THROWS_WITH_AS(step.finish(), "exchange 0 failed", gs::error);
  CHECK(c.devices->started > 1);
  CHECK(c.devices->started == c.devices->finished);
}
