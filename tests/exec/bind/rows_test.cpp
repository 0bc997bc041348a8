// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/rows.hpp>

#include "serial_run.hpp"

#include <gshard/ops/along/sort.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/reduce/reduce.hpp>
#include <gshard/ops/rows/cross_entropy.hpp>

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

TEST_CASE("top_k refuses more elements than there are when it is bound") {
  const auto best = [](std::int64_t extent) {
    return serial_run({{"A"}}, {{'A', extent}}, {array(std::size_t(extent), 1.0)}, [](const scope&, given x) {
      const gs::sorted y = gs::top_k(x[0], 3);
      return symbols{y.values, y.ids};
    });
  };
  CHECK(best(4) == arrays{{1, 1, 1}, {0, 1, 2}});
  CHECK_THROWS_WITH_AS(best(2), doctest::Contains("top_k: 3 of 2 elements are asked for"), gs::error);
}
