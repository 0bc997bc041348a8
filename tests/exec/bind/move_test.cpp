// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/move.hpp>

#include "serial_run.hpp"

#include <gshard/moe/chunks.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/reverse.hpp>
#include <gshard/ops/window/roll.hpp>
#include <gshard/ops/window/slice.hpp>
#include <gshard/trace/iota.hpp>
#include <gshard/trace/shape.hpp>

#include <cstdint>

namespace gs = gshard;
using run_graph::array, run_graph::arrays, run_graph::given, run_graph::scope, run_graph::serial_run;
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

TEST_CASE("iota counts along either dim") {
  const arrays y = serial_run({}, {{'A', 2}, {'B', 3}}, {}, [](const scope& m, given) {
    return symbols{gs::iota<"AB">(m), gs::iota<"AB">(m, 1)};
  });
  CHECK(y == arrays{{0, 0, 0, 1, 1, 1}, {0, 1, 2, 0, 1, 2}});
}

TEST_CASE("gather reads rows, and scatter_add adds them up") {
  const arrays y = serial_run({{"AB"}, {"C", gs::dtype::i32, 'A'}}, {{'A', 2}, {'B', 2}, {'C', 3}}, {{1, 2, 3, 4}, {1, 1, 0}},
                              [](const scope&, given x) {
                                const gs::symbol rows = gs::gather(x[0], x[1]);
                                return symbols{rows, gs::scatter_add(x[0], x[1], rows)};
                              });
  CHECK(y == arrays{{3, 4, 3, 4, 1, 2}, {2, 4, 9, 12}});
}

TEST_CASE("slices, padding, rolls and concatenation move elements") {
  const arrays y = serial_run({{"A"}}, {{'A', 4}}, {{1, 2, 3, 4}}, [](const scope&, given x) {
    return symbols{gs::slice(x[0], 0, 1, 3), gs::pad(x[0], 0, 1, 2), gs::reverse(x[0], 0), gs::roll(x[0], 0, 1),
                   gs::concat({x[0], x[0]}, 0)};
  });
  CHECK(y == arrays{{2, 3}, {0, 1, 2, 3, 4, 0, 0}, {4, 3, 2, 1}, {4, 1, 2, 3}, {1, 2, 3, 4, 1, 2, 3, 4}});
}
