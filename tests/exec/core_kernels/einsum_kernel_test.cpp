// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/core_kernels/einsum_kernel.hpp>

#include "../bind/serial_run.hpp"

namespace gs = gshard;
using run_graph::arrays, run_graph::given, run_graph::scope, run_graph::serial_run;
using symbols = gs::list<gs::symbol>;

TEST_CASE("einsum contracts, broadcasts, transposes and takes diagonals") {
  const arrays y = serial_run({{"AB"}, {"BC"}, {"AA"}}, {{'A', 2}, {'B', 3}, {'C', 1}},
                       {{1, 2, 3, 4, 5, 6}, {1, 10, 100}, {7, 8, 9, 10}}, [](const scope&, given x) {
                         return symbols{gs::einsum<"ab,bc->ca">(x[0], x[1]), gs::einsum<"ab->ba">(x[0]),
                                        gs::einsum<"ab,cd->c">(x[2], x[1]), gs::einsum<"aa->a">(x[2])};
                       });
  CHECK(y == arrays{{321, 654}, {1, 4, 2, 5, 3, 6}, {34, 340, 3400}, {7, 10}});
}
