// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/collective/gather_at_once.hpp>

#include "on_devices.hpp"

namespace gs = gshard;
namespace op = gs::op;

TEST_CASE("gather at once: rows and columns, uneven and empty shards, without an exchange") {
  for (const int dim : {0, 1})
    for (const std::pair<std::int64_t, std::int64_t>& extents : {std::pair<std::int64_t, std::int64_t>{6, 9}, {7, 5}, {2, 2}, {0, 3}}) {
      const on_devices::cluster c({3});
      on_devices::matrix in(c, extents, {dim == 0 ? 0 : -1, dim == 1 ? 0 : -1}), out(c, extents, {-1, -1});
      in.set(in.numbers([](std::size_t) { return 5; }));
      gs::detail::exchanged_blocks blocks = blocks_of_exchange(gs::detail::step_moves(op::all_gather, c.on, 1, {{in.value, out.value}}),
                                                               std::make_shared<gs::detail::collective_room>(), false);
      gs::detail::gather_at_once step(std::move(blocks));
      on_devices::check(c, step, out, 5, out.value.bytes(0) - in.value.bytes(0));
      CHECK(c.devices->started == 0);
    }
}
