// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/index/gather_kernel.hpp>

#include "../../exec/bind/serial_run.hpp"

namespace gs = gshard;
using run_graph::arrays, run_graph::given, run_graph::scope, run_graph::serial_run;
using symbols = gs::list<gs::symbol>;

TEST_CASE("gather reads rows, and scatter_add adds them up") {
  const arrays y = serial_run({{"AB"}, {"C", gs::dtype::i32, 'A'}}, {{'A', 2}, {'B', 2}, {'C', 3}}, {{1, 2, 3, 4}, {1, 1, 0}},
                              [](const scope&, given x) {
                                const gs::symbol rows = gs::gather(x[0], x[1]);
                                return symbols{rows, gs::scatter_add(x[0], x[1], rows)};
                              });
  CHECK(y == arrays{{3, 4, 3, 4, 1, 2}, {2, 4, 9, 12}});
}
