// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/collective/block_rounds.hpp>

#include "on_devices.hpp"

#include <cstring>

namespace gs = gshard;
namespace op = gs::op;
using gs::detail::block_rounds;

namespace {

/// The blocks of a matrix that two devices exchange.
struct exchanged {
  on_devices::cluster c{{2}};
  on_devices::matrix in, out;
  gs::detail::step_moves moves;
  block_rounds blocks;

  exchanged(std::pair<std::int64_t, std::int64_t> extents, std::pair<int, int> from, std::pair<int, int> to, bool levels)
      : in(c, extents, from),
        out(c, extents, to),
        moves(op::all_to_all, c.on, 1, {{in.value, out.value}}),
        blocks(moves, std::make_shared<gs::detail::collective_room>(), levels) {
    in.set(in.numbers([](std::size_t) { return 1; }));
    for (std::size_t i = 0; i < 2; ++i)
      moves.for_each_origin(moves.group(i), [&](std::size_t sender, std::size_t receiver, const std::vector<gs::detail::piece>& pieces) {
        if (sender == receiver) return;
        if (sender == i) blocks.send(i, receiver, pieces);
        else blocks.receive(i, sender, pieces);
      });
  }
  /// Copies all blocks, round after round.
  void run() {
    for (std::size_t r = 0; r < blocks.rounds(); ++r) {
      for (std::size_t i = 0; i < 2; ++i) {
        const std::span<const std::byte> from = blocks.outgoing(1 - i, r, i);
        const std::span<std::byte> to = blocks.incoming(i, r, 1 - i);
        REQUIRE(from.size() == to.size());
        if (!to.empty()) std::memcpy(to.data(), from.data(), to.size());
      }
      blocks.unpack(r);
    }
  }
  /// The elements that differ from those of the whole matrix, other than the kept ones.
  int wrong() {
    out.set(out.numbers([](std::size_t) { return -1; }));
    run();
    int n = 0;
    const auto expected = out.numbers([](std::size_t) { return 1; });
    for (std::size_t i = 0; i < 2; ++i) {
      moves.copy(moves.kept(i), i);
      for (std::size_t k = 0; k < expected[i].size(); ++k) n += out.memory[i][k] != expected[i][k];
    }
    return n;
  }
};

}  // namespace

TEST_CASE("block rounds: a short block is one round with bounds, packed on the side where it is not contiguous") {
  exchanged e({6, 4}, {0, -1}, {-1, 0}, false);
  e.blocks.place({.block_bytes = 3 * 2 * 4, .messages = 1});
  CHECK(e.blocks.rounds() == 1);
  CHECK(e.blocks.bounds().block_bytes == 24);
  CHECK(e.blocks.received(0) == 24);
  CHECK(e.blocks.members(0) == 2);
  CHECK(e.blocks.me(1) == 1);
  const std::byte* const from = e.blocks.outgoing(0, 0, 1).data();
  CHECK((from < e.in.value.data[0] || from >= e.in.value.data[0] + e.in.value.bytes(0)));  // columns are packed
  CHECK(e.blocks.incoming(1, 0, 0).data() == e.out.value.data[1]);                           // the first rows of the new shard
  CHECK(e.wrong() == 0);
}

TEST_CASE("block rounds: long blocks are several rounds without bounds, contiguous ones one round, and an empty exchange none") {
  const std::int64_t rows = 1 << 10, columns = 1 << 9;
  exchanged packed({rows, columns}, {0, -1}, {-1, 0}, false);
  packed.blocks.place({.block_bytes = rows * columns, .messages = 1});
  CHECK(packed.blocks.rounds() == 2);
  CHECK(packed.blocks.bounds().block_bytes == -1);
  CHECK(packed.blocks.received(1) == rows * columns);
  CHECK(packed.wrong() == 0);
  exchanged shorter({rows, columns}, {0, -1}, {-1, 0}, true);
  shorter.blocks.place({.block_bytes = rows * columns, .messages = 1});
  CHECK(shorter.blocks.rounds() == 4);
  CHECK(shorter.wrong() == 0);
  exchanged whole({rows, columns}, {0, -1}, {-1, -1}, false);
  whole.blocks.place({.block_bytes = 2 * rows * columns, .messages = 1});
  CHECK(whole.blocks.rounds() == 1);
  CHECK(whole.wrong() == 0);
  exchanged none({0, 4}, {0, -1}, {-1, 0}, false);
  none.blocks.place({.block_bytes = 0});
  CHECK(none.blocks.rounds() == 0);
  CHECK(none.blocks.received(0) == 0);
}
