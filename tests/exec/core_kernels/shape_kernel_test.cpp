// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/core_kernels/shape_kernel.hpp>

#include "../bind/serial_run.hpp"

#include <gshard/moe/routing/chunks.hpp>

#include <cstdint>

namespace gs = gshard;
using run_graph::given, run_graph::scope, run_graph::serial_run;
using symbols = gs::list<gs::symbol>;

TEST_CASE("a reshape to dims of another product is refused when it is bound") {
  const auto split = [](std::int64_t second) {
    serial_run({{"A"}}, {{'A', 6}, {'B', 2}, {'C', second}}, {{1, 2, 3, 4, 5, 6}},
               [](const scope&, given x) { return symbols{gs::split_dim<0>(x[0], "BC")}; });
  };
  CHECK_NOTHROW(split(3));
  CHECK_THROWS_WITH_AS(split(4), doctest::Contains("reshape: dim 'A' of extent 6 is not the product of 2 and 4"), gs::error);
}

TEST_CASE("a number of chunks that does not divide the dim is refused when it is bound, by the name of the verb") {
  const auto chunks = [](int n) {
    serial_run({{"A"}}, {{'A', 6}}, {{1, 2, 3, 4, 5, 6}},
               [n](const scope&, given x) { return gs::chunks_of_token_groups(x[0], n); });
  };
  CHECK_NOTHROW(chunks(3));
  CHECK_THROWS_WITH_AS(chunks(4), doctest::Contains("chunks_of_token_groups: dim 'A' of extent 6 is not a multiple of 4"), gs::error);
}
