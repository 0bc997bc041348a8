// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/window/convolution_kernel.hpp>

#include "../../exec/bind/serial_run.hpp"

namespace gs = gshard;
using run_graph::arrays, run_graph::given, run_graph::scope, run_graph::serial_run;
using symbols = gs::list<gs::symbol>;

TEST_CASE("a convolution sums products of taps") {
  const arrays y = serial_run({{"BXI"}, {"KIO"}}, {{'B', 1}, {'X', 4}, {'I', 1}, {'K', 2}, {'O', 1}}, {{1, 2, 3, 4}, {10, 1}},
                              [](const scope&, given x) { return symbols{gs::conv<"BXI,xIO->BXO">(x[0], x[1])}; });
  CHECK(y == arrays{{12, 23, 34}});
}
