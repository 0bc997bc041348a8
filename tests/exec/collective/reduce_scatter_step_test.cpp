// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/collective/reduce_scatter_step.hpp>

#include "on_devices.hpp"

namespace gs = gshard;
namespace op = gs::op;

TEST_CASE("reduce_scatter step: sums of rows or columns, on one node or several, in one round or several") {
  for (const std::vector<int>& node : {std::vector<int>{}, {0, 0, 1}})
    for (const int dim : {0, 1})
      for (const std::pair<std::int64_t, std::int64_t>& extents : {std::pair<std::int64_t, std::int64_t>{6, 9}, {2, 7}, {300, 700}}) {
        const on_devices::cluster c({3}, node);
        on_devices::matrix in(c, extents, {-1, -1}, true), out(c, extents, {dim == 0 ? 0 : -1, dim == 1 ? 0 : -1});
        in.set(in.numbers([](std::size_t device) { return device + 1; }));
        gs::detail::reduce_scatter_step step(gs::detail::step_moves(op::reduce_scatter, c.on, 1, {{in.value, out.value}}),
                                             std::make_shared<gs::detail::collective_room>(), dim == 1);
        on_devices::check(c, step, out, 6, 2 * out.value.bytes(0));
        CHECK(c.devices->started > 0);
      }
}

TEST_CASE("reduce_scatter step: replicas on the same nodes sum a share each, and exchange the shares after an error as well") {
  const on_devices::cluster c({2, 2}, {0, 0, 1, 1});
  on_devices::matrix in(c, {8, 6}, {-1, -1}, true), out(c, {8, 6}, {0, -1});
  in.set(in.numbers([](std::size_t device) { return device / 2 + 1; }));
  gs::detail::reduce_scatter_step step(gs::detail::step_moves(op::reduce_scatter, c.on, 1, {{in.value, out.value}}),
                                       std::make_shared<gs::detail::collective_room>(), false);
  on_devices::check(c, step, out, 3, out.value.bytes(0));
  std::int64_t between_nodes = 0;
  c.devices->reset_received();
  step.start();
  step.finish();
  for (const gs::traffic& t : c.devices->received()) between_nodes += t.between_nodes;
  CHECK(between_nodes == 8 * 6 * 4);  // once, not for every replica
  const std::size_t exchanges = c.devices->started;
  c.devices->fails = std::string(exchanges, '-') + "x";
  step.start();
  CHECK_THROWS_AS(step.finish(), gs::error);
  CHECK(c.devices->started == exchanges + 2);
  CHECK(c.devices->started == c.devices->finished);
}
