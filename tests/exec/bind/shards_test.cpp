// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/shards.hpp>

#include <gshard/core/ir/spec.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace gs = gshard;
using gs::axes, gs::none, gs::P, gs::partial;
using plan_mesh = gs::mesh<gs::axis<"data">, gs::axis<"expert">>;

namespace {
template <class Spec, class Mesh>
gs::sharding on_mesh() {
  gs::diagnostic problem;
  return gs::resolve(Spec::named, Mesh::shape, "test", problem);
}
}  // namespace

TEST_CASE("the axes of a plan are those of the cluster that have their names") {
  using cluster_mesh = gs::mesh<gs::axis<"expert">, gs::axis<"other">, gs::axis<"data">>;
  const gs::detail::axis_map map(plan_mesh::shape, gs::simulate<cluster_mesh>({2, 3, 2}));
  CHECK(map.mask(1u) == 4u);
  CHECK(map.mask(2u) == 1u);
  CHECK(map.mask(3u) == 5u);
  using spec = P<axes<"data", "expert">, none>;
  CHECK(map(on_mesh<spec, plan_mesh>()).same_layout(on_mesh<spec, cluster_mesh>()));
  using pending = P<none, "data", partial<"expert">>;
  CHECK(map(on_mesh<pending, plan_mesh>()).same_layout(on_mesh<pending, cluster_mesh>()));
}

TEST_CASE("an axis that the cluster lacks is named") {
  CHECK_THROWS_WITH_AS(gs::detail::axis_map(plan_mesh::shape, gs::simulate<gs::mesh<gs::axis<"data">>>(2)),
                       "program: the cluster has no mesh axis called \"expert\"", gs::error);
}

TEST_CASE("bound values know the sizes of their shards") {
  gs::detail::bound_value v;
  v.type = gs::dtype::f64;
  v.extents = {4, 5, 6};
  v.places = {{3, {4, 5, 3}, {0, 0, 0}, {4, 5, 6}}, {3, {4, 5, 0}, {0, 0, 6}, {4, 5, 6}}};
  CHECK(v.rank() == 3);
  CHECK(v.elements(0) == 60);
  CHECK(v.bytes(0) == 480);
  CHECK(v.bytes(1) == 0);
  CHECK(v.span(0, 1, 3) == 15);
  CHECK(v.span(0, 2, 2) == 1);
  CHECK(v.extent(1, 2) == 0);
}
