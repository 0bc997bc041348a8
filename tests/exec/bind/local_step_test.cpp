// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/local_step.hpp>

#include "../run_graph.hpp"

#include <gshard/exec/backend/simulated.hpp>
#include <gshard/ops/along/cumsum.hpp>

#include <cstdint>
#include <memory>
#include <span>

namespace gs = gshard;

TEST_CASE("indices that are no int32 numbers are refused") {
  const std::int64_t most = std::int64_t(1) << 31;
  CHECK_NOTHROW(gs::detail::check_indices("iota", most));
  CHECK_THROWS_WITH_AS(gs::detail::check_indices("iota", most + 1),
                       "iota: the indices of a dim of extent 2147483649 do not fit into int32", gs::error);
}

TEST_CASE("a step on a device: its shards as rows, and as lines along a dim") {
  const run_graph::traced t = run_graph::trace({{"ABC"}}, [](const gs::parameter_scope&, std::span<const gs::symbol> x) {
    return gs::list<gs::symbol>{gs::cumsum(x[0], 1)};
  });
  gs::sharding rows = gs::sharding::replicated(3);
  rows[0].push_back(0);
  const gs::dims sizes{{'A', 5}, {'B', 6}, {'C', 4}};
  const gs::plan_tables tables = run_graph::plan(t, {.mesh = {2}, .dims = sizes, .layouts = {rows}});
  const gs::plan_view view = tables.view();
  const gs::any_cluster on(run_graph::mesh_of_rank(1), std::make_shared<gs::simulated>(std::vector<int>{2}));
  gs::detail::bound_plan bound(view, on);
  bound.bind(sizes);

  const gs::detail::local_step<float> last(view.steps[0], bound, 1);
  CHECK(last.rows() == 2 * 6);
  CHECK(last.cols() == 4);
  CHECK(last.in_elements(0) == 2 * 6 * 4);
  const auto line = last.in_line(0);
  CHECK(line.outer == 2);
  CHECK(line.n == 6);
  CHECK(line.inner == 4);
  const auto sharded = last.line(last.in_value(0), 0);
  CHECK(sharded.n == 2);
  CHECK(sharded.first == 3);
  CHECK(sharded.whole == 5);
  CHECK(last.in_dims(0).extent[0] == 2);
  CHECK(last.in_or_null(1) == nullptr);
}
