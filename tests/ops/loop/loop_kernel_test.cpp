// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/loop/loop_kernel.hpp>

#include "../../exec/bind/serial_run.hpp"

#include <gshard/core/trace/map.hpp>
#include <gshard/ops/loop/scan.hpp>

#include <tuple>

namespace gs = gshard;
using run_graph::arrays, run_graph::given, run_graph::scope, run_graph::serial_run;
using symbols = gs::list<gs::symbol>;

TEST_CASE("a loop carries its state, and stacks rows") {
  const arrays y = serial_run({{"A"}}, {{'A', 2}}, {{1, 2}}, [](const scope&, given x) {
    const auto [last, all] = gs::scan<3>([](auto, auto s) { return std::tuple(2.0 * s, s); }, x[0]);
    return symbols{last, all};
  });
  CHECK(y == arrays{{8, 16}, {1, 2, 2, 4, 4, 8}});
}
