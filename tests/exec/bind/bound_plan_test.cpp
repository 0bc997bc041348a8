// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/bound_plan.hpp>

#include "../../complaint.hpp"
#include "../run_graph.hpp"

#include <gshard/core/trace/map.hpp>
#include <gshard/exec/backend/simulated.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gs = gshard;
using scope = gs::parameter_scope;
using cluster_mesh = gs::mesh<gs::axis<"other">, gs::axis<"x">>;

namespace {

const gs::plan_tables& plan() {
  static const gs::plan_tables made = [] {
    const run_graph::traced t =
        run_graph::trace({{"AB"}}, [](const scope&, std::span<const gs::symbol> x) { return gs::list<gs::symbol>{gs::relu(x[0])}; });
    gs::sharding rows = gs::sharding::replicated(2);
    rows[0].push_back(0);
    return run_graph::plan(t, {.mesh = {3}, .dims = {{'A', 7}, {'B', 2}}, .layouts = {rows}});
  }();
  return made;
}

}  // namespace

TEST_CASE("a bound plan: extents, and which shards the devices hold, on a cluster with more axes in another order") {
  const gs::plan_view view = plan().view();
  const gs::any_cluster on = gs::simulate<cluster_mesh>({2, 3});
  gs::detail::bound_plan bound(view, on);
  CHECK(bound.values.empty());
  bound.bind({{'A', 7}, {'B', 2}});
  REQUIRE(bound.values.size() == view.values.size());
  const gs::detail::bound_value& x = bound.value(view.inputs[0].value);
  CHECK(x.extents == std::vector<std::int64_t>{7, 2});
  REQUIRE(x.places.size() == 6);
  const std::int64_t rows[] = {3, 3, 1};  // ceil(7 / 3)
  for (std::size_t d = 0; d < 6; ++d) {
    CAPTURE(d);
    CHECK(x.extent(d, 0) == rows[d % 3]);
    CHECK(x.places[d].offset[0] == 3 * std::int64_t(d % 3));
    CHECK(x.extent(d, 1) == 2);
    CHECK(x.data[d] == nullptr);
  }
}

TEST_CASE("a bound plan: extents that the program states need not be given") {
  const run_graph::traced t =
      run_graph::trace({{"AB"}}, [](const scope&, std::span<const gs::symbol> x) { return gs::list<gs::symbol>{gs::relu(x[0])}; });
  run_graph::setting s{.mesh = {3}, .dims = {}, .layouts = {gs::sharding::replicated(2)}};
  s.options.known = {{'B', 2}};
  const gs::plan_tables tables = run_graph::plan(t, s);
  const gs::plan_view view = tables.view();
  const gs::any_cluster on = gs::simulate<cluster_mesh>({2, 3});
  gs::detail::bound_plan bound(view, on);
  bound.bind({{'A', 7}});
  CHECK(bound.value(view.inputs[0].value).extents == std::vector<std::int64_t>{7, 2});
  CHECK(complaint([&] { gs::detail::bound_plan(view, on).bind({{'A', 7}, {'B', 3}}); }) ==
        "program: dim 'B' has extent 2 in the program and is given 3");
}

TEST_CASE("a bound plan: what cannot be bound is named") {
  const gs::plan_view view = plan().view();
  const auto problem = [&](const gs::any_cluster& on, const gs::dims& given) {
    return complaint([&] { gs::detail::bound_plan(view, on).bind(given); });
  };
  const gs::any_cluster on = gs::simulate<cluster_mesh>({2, 3});
  CHECK(problem(on, {{'A', 7}, {'B', 2}}).empty());
  CHECK(problem(on, {{'A', 7}}) == "program: dim 'B' is given no extent");
  for (const int negative : {-1, -3})
    CHECK(problem(on, {{'A', 7}, {'B', negative}}) == "program: dim 'B' is given the extent " + std::to_string(negative));
  CHECK(problem(on, {{'A', 7}, {'B', 0}}).empty());
  CHECK(problem(on, {{'A', 1LL << 40}, {'B', 1LL << 40}}) ==
        "program: the input AB has 1099511627776 x 1099511627776 elements, more than can be counted");
  CHECK(problem(on, {{'A', INT64_MAX}, {'B', 0}}) ==
        "program: dim 'A' has the extent 9223372036854775807, and at most 9007199254740992 can be counted");
  CHECK(problem(on, {{'A', 7}, {'B', -1}, {'B', 2}}) == "program: dim 'B' is given two extents");
  CHECK(problem(on, {{'A', 7}, {'B', 2}, {'A', 8}}) == "program: dim 'A' is given two extents");
  CHECK(problem(gs::simulate<gs::mesh<gs::axis<"other">>>(3), {{'A', 7}, {'B', 2}}) ==
        "program: the cluster has no mesh axis called \"x\"");
}
