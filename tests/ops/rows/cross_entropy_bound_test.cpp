// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/rows/cross_entropy_kernel.hpp>

#include "../../exec/bind/serial_run.hpp"

#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/reduce/reduce.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace gs = gshard;
using run_graph::array, run_graph::arrays, run_graph::given, run_graph::scope, run_graph::serial_run;
using symbols = gs::list<gs::symbol>;

TEST_CASE("cross_entropy and reduce_max") {
  const arrays y = serial_run({{"AB"}, {"C", gs::dtype::i32, 'A'}}, {{'A', 2}, {'B', 2}, {'C', 3}},
                       {{1, 1, 3, 4}, {1, 1, 0}}, [](const scope&, given x) {
                         const gs::symbol rows = gs::gather(x[0], x[1]);
                         return symbols{rows, gs::cross_entropy(rows, x[1]), gs::reduce_max<"ca->a">(rows)};
                       });
  CHECK(y[0] == array{3, 4, 3, 4, 1, 1});
  CHECK(y[1][0] == doctest::Approx(std::log(1 + std::exp(-1.0))).epsilon(1e-14));
  CHECK(y[1][2] == doctest::Approx(std::log(2.0)).epsilon(1e-14));
  CHECK(y[2] == array{3, 4});
}
