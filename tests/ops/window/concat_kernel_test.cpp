// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/window/concat_kernel.hpp>

#include "../../exec/bind/serial_run.hpp"

namespace gs = gshard;
using run_graph::arrays, run_graph::given, run_graph::scope, run_graph::serial_run;
using symbols = gs::list<gs::symbol>;

TEST_CASE("concat puts tensors one after the other") {
  const arrays y = serial_run({{"A"}, {"BA"}}, {{'A', 2}, {'B', 1}}, {{1, 2}, {3, 4}}, [](const scope&, given x) {
    return symbols{gs::concat({x[0], x[0], x[0]}, 0), gs::concat({x[1], x[1]}, 1)};
  });
  CHECK(y == arrays{{1, 2, 1, 2, 1, 2}, {3, 4, 3, 4}});
}
