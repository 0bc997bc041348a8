// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/along/sort_kernel.hpp>

#include "../../exec/bind/serial_run.hpp"

#include <cstddef>
#include <cstdint>

namespace gs = gshard;
using run_graph::array, run_graph::arrays, run_graph::given, run_graph::scope, run_graph::serial_run;
using symbols = gs::list<gs::symbol>;

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
