// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/collective_step.hpp>

#include "run_graph.hpp"

namespace gs = gshard;
using gs::symbol;
using run_graph::every_sharding, run_graph::trace, run_graph::lay_out;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using scope = gs::parameter_scope;

namespace {
const std::vector<gs::dims> sizes{
    {{'A', 6}, {'B', 12}, {'C', 6}}, {{'A', 5}, {'B', 7}, {'C', 3}}, {{'A', 2}, {'B', 1}, {'C', 4}}};
}

TEST_CASE("every layout to every layout, through every sequence of moves") {
  for (const bool pending : {false, true}) {
    const run_graph::sweep how{.dims = sizes, .pending_sources = pending, .most = 1000};
    every_sharding(trace({{"A"}}, [](const scope&, given x) { return symbols{lay_out(x[0])}; }), how);
    every_sharding(trace({{"AB"}}, [](const scope&, given x) { return symbols{lay_out(x[0])}; }), how);
    every_sharding(trace({{"ABC"}},
                         [](const scope&, given x) {
                           return symbols{lay_out(x[0]), lay_out(lay_out(x[0]))};
                         }),
                   how);
  }
  every_sharding(
      trace({{"AB", gs::dtype::i32, 'A'}}, [](const scope&, given x) { return symbols{lay_out(x[0])}; }),
      {sizes});
}

TEST_CASE("layouts on three axes") {
  const run_graph::traced t = trace({{"AB"}}, [](const scope&, given x) { return symbols{lay_out(x[0])}; });
  const auto from = run_graph::all_layouts(2, 3, true), to = run_graph::all_layouts(2, 3);
  for (const std::vector<int>& mesh : {std::vector{2, 2, 2}, std::vector{3, 1, 2}})
    for (const gs::dims& dims : {gs::dims{{'A', 24}, {'B', 12}}, gs::dims{{'A', 11}, {'B', 3}}}) {
      const run_graph::arrays whole = run_graph::random_sources(t, dims, 2);
      int wrong = 0;
      for (const gs::sharding& f : from)
        for (const gs::sharding& g : to) {
          const run_graph::setting s{.mesh = mesh, .dims = dims, .layouts = {f, g}};
          if (run_graph::run(t, s, whole) != whole && ++wrong <= 3) FAIL_CHECK(run_graph::text_of(s));
        }
      CHECK(wrong == 0);
    }
}

TEST_CASE("what is no collective is refused") {
  const gs::any_cluster on(run_graph::mesh_of_rank(1), std::make_shared<gs::simulated>(std::vector{2}));
  const gs::detail::bound_value v;
  CHECK_THROWS_WITH_AS(gs::detail::collective_step(gs::op::softmax, on, 1, v, v, std::make_shared<gs::reducer>(gs::small_sum_bytes)),
                       "executor: a plan step of kind softmax cannot be run", gs::error);
}
