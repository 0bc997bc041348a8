// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Local functions of shards on every mesh: results that are computed from global indices do not depend on the mesh.
#include "run_graph.hpp"

#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/ops/user/call_on_shards.hpp>

namespace gs = gshard;
using gs::axes, gs::none, gs::P, gs::partial, gs::symbol;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;

namespace {

/// Column sums of the local rows, times the column's global index.
constexpr auto weighted_columns = []<class T>(gs::local_shard<const T> x, gs::local_shard<T> y) {
  for (std::int64_t j = 0; j < y.size(); ++j) {
    y.data[j] = 0;
    for (std::int64_t i = 0; i < x.extent(0); ++i) y.data[j] += x.data[i * x.extent(1) + j] * T(y.offset(0) + j);
  }
};

}  // namespace

TEST_CASE("a local function of shards: sharded columns, and rows whose sums are declared pending") {
  const gs::dims dims{{'A', 5}, {'B', 7}};
  const run_graph::traced t = run_graph::trace({{"AB"}}, [](const gs::parameter_scope&, given x) {
    const symbol columns = gs::call_on_shards<weighted_columns, "B", P<"y">>(gs::annotate<P<none, "y">>(x[0]));
    const symbol rows = gs::call_on_shards<weighted_columns, "B", P<none, partial<"x", "z">>>(gs::annotate<P<axes<"x", "z">, none>>(x[0]));
    return symbols{columns, rows};
  });
  const run_graph::arrays sources = run_graph::random_sources(t, dims, 3);
  run_graph::array expected(7, 0.0);
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 7; ++j) expected[j] += sources[0][i * 7 + j] * double(j);
  for (const std::vector<int>& mesh : {std::vector{1, 1, 1}, {2, 1, 1}, {2, 2, 1}, {1, 3, 2}, {2, 2, 3}}) {
    CAPTURE(gs::detail::mesh_text(mesh));
    run_graph::setting s{.mesh = mesh, .dims = dims, .layouts = {}};
    for (const std::int32_t v : t.free) s.layouts.push_back(t.graph.at(v).layout);
    s.layouts[0] = gs::sharding::replicated(2);
    const run_graph::arrays got = run_graph::run(t, s, sources);
    CHECK(got[0] == expected);
    CHECK(got[1] == expected);
  }
}
