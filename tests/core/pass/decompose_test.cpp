// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rewrites of plans that are computed when the test runs. static/core/pass/decompose.cpp has others as constants.
#include <gshard/core/pass/decompose.hpp>

#include "../../exec/run_graph.hpp"

#include <gshard/ops/along/sort.hpp>
#include <gshard/ops/reduce/argmax.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <span>

namespace gs = gshard;
namespace op = gs::op;
using given = std::span<const gs::symbol>;

TEST_CASE("decompose: an argmin or argmax that gathers the best element of each block finds NaN, in whatever block it is") {
  const run_graph::traced t = run_graph::trace({{"AB", gs::dtype::f32}}, [](const gs::parameter_scope&, given x) {
    return gs::list<gs::symbol>{gs::argmin<"ab->a">(x[0]), gs::argmax<"ab->a">(x[0])};
  });
  run_graph::setting s{.mesh = {2}, .dims = {{'A', 3}, {'B', 8}}, .layouts = {gs::sharding::replicated(2)}, .known_axes = "x"};
  s.layouts[0][1].push_back(0);
  s.options.known = s.dims;
  const gs::plan_tables plan = run_graph::plan(t, s);
  CHECK(plan.view().count(op::top_k) == 4);
  CHECK(plan.view().count(op::argmax) == 0);
  const double nan = std::nan("");
  const run_graph::array x{4, 3, nan, 1, 2, 5, 4, 3, 2, 1, 5, 4, 3, nan, 0, 6, 4, 3, 7, 1, 2, 0, 4, 3};
  const run_graph::arrays found = run_graph::run(t, s, {x});
  CHECK(found[0] == run_graph::array{2, 5, 5});
  CHECK(found[1] == run_graph::array{2, 5, 2});
}
