// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/collective/local_copy.hpp>

#include "on_devices.hpp"

namespace gs = gshard;
namespace op = gs::op;

TEST_CASE("local copy: a slice copies rows, or columns, without messages") {
  for (const std::pair<int, int>& to : {std::pair{0, -1}, {-1, 0}, {-1, -1}}) {
    const on_devices::cluster c({3});
    on_devices::matrix in(c, {7, 5}, {-1, -1}), out(c, {7, 5}, to);
    in.set(in.numbers([](std::size_t) { return 2; }));
    gs::detail::local_copy step(gs::detail::step_moves(op::slice, c.on, 1, {{in.value, out.value}}));
    on_devices::check(c, step, out, 2, 0);
    CHECK(c.devices->started == 0);
  }
}

TEST_CASE("kept pieces: counts the bytes of contiguous pieces and of others, and leaves other elements alone") {
  const on_devices::cluster c({2});
  on_devices::matrix in(c, {4, 6}, {0, -1}), out(c, {4, 6}, {-1, 0});
  in.set(in.numbers([](std::size_t) { return 1; }));
  out.set(out.numbers([](std::size_t) { return -1; }));
  const gs::detail::step_moves moves(op::all_to_all, c.on, 1, {{in.value, out.value}});
  const gs::detail::kept_pieces kept(moves, {moves.kept(0), moves.kept(1)});
  CHECK(kept.bytes() == 2 * 2 * 3 * 4);
  kept.copy(moves);
  CHECK(out.memory[0] == std::vector<float>{0, 1, 2, 6, 7, 8, -12, -13, -14, -18, -19, -20});
  CHECK(gs::detail::kept_pieces().bytes() == 0);
}
