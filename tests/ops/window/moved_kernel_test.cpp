// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/window/moved_kernel.hpp>

#include "../../exec/bind/serial_run.hpp"

#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/reverse.hpp>
#include <gshard/ops/window/roll.hpp>
#include <gshard/ops/window/slice.hpp>

namespace gs = gshard;
using run_graph::arrays, run_graph::given, run_graph::scope, run_graph::serial_run;
using symbols = gs::list<gs::symbol>;

TEST_CASE("slices, padding, reversal and rolls move elements") {
  const arrays y = serial_run({{"A"}}, {{'A', 4}}, {{1, 2, 3, 4}}, [](const scope&, given x) {
    return symbols{gs::slice(x[0], 0, 1, 3), gs::pad(x[0], 0, 1, 2), gs::reverse(x[0], 0), gs::roll(x[0], 0, 1)};
  });
  CHECK(y == arrays{{2, 3}, {0, 1, 2, 3, 4, 0, 0}, {4, 3, 2, 1}, {4, 1, 2, 3}});
}
