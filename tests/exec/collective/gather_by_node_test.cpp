// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/collective/gather_by_node.hpp>

#include "on_devices.hpp"

namespace gs = gshard;
namespace op = gs::op;

TEST_CASE("gather by node: a node receives every block once, in one round or several") {
  for (const bool early : {false, true})
    for (const std::pair<std::int64_t, std::int64_t>& extents : {std::pair<std::int64_t, std::int64_t>{6, 9}, {600, 700}}) {
      const on_devices::cluster c({4}, {0, 1, 0, 1});
      on_devices::matrix in(c, extents, {-1, 0}), out(c, extents, {-1, -1});
      in.set(in.numbers([](std::size_t) { return 2; }));
      gs::detail::held_groups groups;
      groups.use(c.on.backend(), 1);
      gs::detail::exchanged_blocks blocks = blocks_of_exchange(gs::detail::step_moves(op::all_gather, c.on, 1, {{in.value, out.value}}),
                                                               std::make_shared<gs::detail::collective_room>(), true);
      gs::detail::gather_by_node step(std::move(blocks), groups, early);
      on_devices::check(c, step, out, 2, out.value.bytes(0) - in.value.bytes(0));
      c.devices->reset_received();
      step.start();
      step.finish();
      std::int64_t between_nodes = 0;
      for (const gs::traffic& t : c.devices->received()) between_nodes += t.between_nodes;
      CHECK(between_nodes == extents.first * extents.second * 4);  // each half is sent to the other node
    }
}
