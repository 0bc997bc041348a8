// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/window/pool_kernel.hpp>

#include "../../exec/bind/serial_run.hpp"

#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/trace/einsum.hpp>

namespace gs = gshard;
using run_graph::arrays, run_graph::given, run_graph::scope, run_graph::serial_run;
using symbols = gs::list<gs::symbol>;

TEST_CASE("a pool takes the largest element of each window, and its gradient goes there") {
  const arrays y = serial_run({{"A"}}, {{'A', 6}}, {{1, 5, 2, 2, 9, 3}}, [](const scope&, given x) {
    const gs::symbol best = gs::max_pool(x[0], {{0, 2, {.stride = 2}}});
    return symbols{best, gs::gradients(gs::sum(best), x)[0]};
  });
  CHECK(y == arrays{{5, 2, 9}, {0, 1, 1, 0, 1, 0}});
}
