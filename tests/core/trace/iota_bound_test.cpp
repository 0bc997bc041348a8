// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/core_kernels/iota_kernel.hpp>

#include "../../exec/bind/serial_run.hpp"

namespace gs = gshard;
using run_graph::arrays, run_graph::given, run_graph::scope, run_graph::serial_run;
using symbols = gs::list<gs::symbol>;

TEST_CASE("iota counts along either dim") {
  const arrays y = serial_run({}, {{'A', 2}, {'B', 3}}, {}, [](const scope& m, given) {
    return symbols{gs::iota<"AB">(m), gs::iota<"AB">(m, 1)};
  });
  CHECK(y == arrays{{0, 0, 0, 1, 1, 1}, {0, 1, 2, 0, 1, 2}});
}
