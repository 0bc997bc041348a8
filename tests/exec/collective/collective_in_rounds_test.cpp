// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/collective/collective_in_rounds.hpp>

#include "on_devices.hpp"

namespace gs = gshard;
namespace op = gs::op;

namespace {
using move = std::pair<std::pair<int, int>, std::pair<int, int>>;

gs::detail::exchanged_blocks blocks(gs::op_ref kind, const move& m, bool by_node, std::pair<std::int64_t, std::int64_t> extents = {8, 4}) {
  const on_devices::cluster c({4});
  const on_devices::matrix in(c, extents, m.first), out(c, extents, m.second);
  return blocks_of_exchange(gs::detail::step_moves(kind, c.on, 1, {{in.value, out.value}}), std::make_shared<gs::detail::collective_room>(),
                            by_node);
}
}  // namespace

TEST_CASE("blocks of an exchange: bounds and bytes that are the same for all members") {
  const gs::detail::exchanged_blocks all_to_all = blocks(op::all_to_all, {{0, -1}, {-1, 0}}, false);
  CHECK(all_to_all.blocks.rounds() == 1);
  CHECK(all_to_all.blocks.bounds().block_bytes == 2 * 1 * 4);
  CHECK(all_to_all.blocks.bounds().messages == 3);
  CHECK(all_to_all.received == std::vector<std::int64_t>(4, 3 * 8));
  CHECK(all_to_all.kept.bytes() == 4 * 8);
  const gs::detail::exchanged_blocks uneven = blocks(op::all_to_all, {{0, -1}, {-1, 0}}, false, {5, 4});  // 2, 2, 1 and 0 rows
  CHECK(uneven.blocks.rounds() == 1);
  CHECK(uneven.blocks.bounds().block_bytes == 8);
  CHECK(uneven.received == std::vector<std::int64_t>{12, 12, 16, 20});
}

TEST_CASE("blocks of an all_gather: the own block is sent to all, and by node to nobody else") {
  const gs::detail::exchanged_blocks direct = blocks(op::all_gather, {{0, -1}, {-1, -1}}, false),
                                     by_node = blocks(op::all_gather, {{0, -1}, {-1, -1}}, true);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t m = 0; m < 4; ++m) {
      CHECK(direct.blocks.outgoing(i, 0, m).size() == 32);
      CHECK(direct.blocks.incoming(i, 0, m).size() == (i == m ? 0 : 32));
      CHECK(by_node.blocks.outgoing(i, 0, m).size() == (i == m ? 32 : 0));
      CHECK(by_node.blocks.incoming(i, 0, m).size() == (i == m ? 0 : 32));
    }
  CHECK(direct.blocks.bounds().messages == 3);
  CHECK(by_node.blocks.bounds().block_bytes == -1);
  CHECK(by_node.received == direct.received);
}
