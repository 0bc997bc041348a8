// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Broadcasting and its gradient, with any layouts, equal those on one device.
#include "with_gradients.hpp"

#include <gshard/core/trace/broadcast.hpp>
#include <gshard/core/trace/select.hpp>
#include <gshard/ops/reduce/reduce.hpp>

namespace gs = gshard;
using gs::broadcast, gs::symbol;
using run_graph::every_sharding, run_graph::trace, run_graph::lay_out, run_graph::with_gradients;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using scope = gs::parameter_scope;

namespace {

const std::vector<gs::dims> broadcast_sizes{
    {{'A', 6}, {'B', 12}, {'C', 6}}, {{'A', 5}, {'B', 7}, {'C', 3}}, {{'A', 1}, {'B', 2}, {'C', 4}}};

}  // namespace

TEST_CASE("broadcast along the first, a middle and the last dim") {
  for (const bool pending : {false, true}) {
    const run_graph::sweep how{.dims = broadcast_sizes, .pending_sources = pending, .most = 300};
    every_sharding(trace({{"A"}, {"B"}}, [](const scope&, given x) { return symbols{lay_out(broadcast<"a,b->ab">(x[0], x[1]))}; }), how);
    every_sharding(trace({{"B"}, {"AB"}}, [](const scope&, given x) { return symbols{lay_out(broadcast<"b,ab->ab">(x[0], x[1]))}; }), how);
    every_sharding(trace({{"AC"}, {"B"}}, [](const scope&, given x) { return symbols{lay_out(broadcast<"ac,b->abc">(x[0], x[1]))}; }), how);
    every_sharding(trace({{""}, {"AB"}}, [](const scope&, given x) { return symbols{lay_out(broadcast<",ab->ba">(x[0], x[1]))}; }), how);
  }
}

TEST_CASE("broadcast of transposed tensors") {
  const run_graph::sweep how{.dims = broadcast_sizes, .pending_sources = true, .most = 300};
  every_sharding(trace({{"AB"}}, [](const scope&, given x) { return symbols{lay_out(broadcast<"ab->ba">(x[0]))}; }), how);
  every_sharding(trace({{"AB"}, {"C"}}, [](const scope&, given x) { return symbols{lay_out(broadcast<"ab,c->bca">(x[0], x[1]))}; }), how);
}

TEST_CASE("one dim of a square matrix is broadcast along the other") {
  every_sharding(trace({{"AA"}},
                       [](const scope&, given x) {
                         const symbol top = gs::reduce_max<"qk->q">(x[0]);
                         return symbols{x[0] - broadcast<"q,qk->qk">(top, x[0]), x[0] * broadcast<"k,qk->qk">(top, x[0])};
                       }),
                 {broadcast_sizes});
  every_sharding(trace({{"AA"}, {"A"}},
                       [](const scope&, given x) {
                         const symbol rows = lay_out(broadcast<"q,qk->qk">(x[1], x[0])),
                                      columns = lay_out(broadcast<"k,qk->qk">(x[1], x[0]));
                         return symbols{rows, columns, gs::select(gs::less(rows, columns), x[0], rows)};
                       }),
                 {.dims = broadcast_sizes, .most = 400});
}

TEST_CASE("gradients of broadcasts, stored or read through") {
  every_sharding(trace({{"A"}, {"AA"}},
                       [](const scope&, given x) { return with_gradients(broadcast<"q,qk->qk">(x[0], x[1]) * x[1], x, 1); }),
                 {.dims = broadcast_sizes, .tolerance = 1e-13, .most = 300});
  every_sharding(trace({{"A"}, {"AA"}},
                       [](const scope&, given x) { return with_gradients(lay_out(broadcast<"k,qk->qk">(x[0], x[1])) * x[1], x, 1); }),
                 {.dims = broadcast_sizes, .tolerance = 1e-13, .most = 300});
  every_sharding(trace({{"AB"}, {"CBA"}},
                       [](const scope&, given x) { return with_gradients(lay_out(broadcast<"ab,cba->cba">(x[0], x[1])) - x[1], x, 1); }),
                 {.dims = broadcast_sizes, .tolerance = 1e-13, .most = 300});
  every_sharding(trace({{"AB"}, {"BA"}},
                       [](const scope&, given x) { return with_gradients(lay_out(broadcast<"ab->ba">(x[0])) * x[1], x, 1); }),
                 {.dims = broadcast_sizes, .tolerance = 1e-13, .most = 300});
}

TEST_CASE("a broadcast has the numbers of what it repeats") {
  const run_graph::traced t = trace({{"AA"}, {"A"}, {"B"}}, [](const scope&, given x) {
    return symbols{x[0] - broadcast<"q,qk->qk">(gs::reduce_max<"qk->q">(x[0]), x[0]), lay_out(broadcast<"q,qk->qk">(x[1], x[0])),
                   lay_out(broadcast<"k,qk->qk">(x[1], x[0])), lay_out(broadcast<"a,b->ba">(x[1], x[2]))};
  });
  const run_graph::arrays y = run_graph::run(t, run_graph::serial(t, {{'A', 2}, {'B', 3}}), {{0, 1, 5, 2}, {3, 4}, {7, 8, 9}});
  CHECK(y[0] == run_graph::array{-1, 0, 0, -3});
  CHECK(y[1] == run_graph::array{3, 3, 4, 4});
  CHECK(y[2] == run_graph::array{3, 4, 3, 4});
  CHECK(y[3] == run_graph::array{3, 4, 3, 4, 3, 4});
}
