// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/tensor/cluster.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <utility>
#include <vector>

namespace gs = gshard;
using one = gs::mesh<gs::axis<"x">>;
using two = gs::mesh<gs::axis<"data">, gs::axis<"expert", 4>>;
using three = gs::mesh<gs::axis<"a">, gs::axis<"b">, gs::axis<"c">>;

TEST_CASE("a cluster binds the extents of its mesh") {
  const auto c = gs::simulate<two>({3, 4});
  CHECK(c.size() == 12);
  CHECK(c.extent(0) == 3);
  CHECK(c.extent(1) == 4);
  CHECK(c.devices().size() == 12);
  CHECK(c.mesh().name(1) == "expert");
  CHECK(gs::simulate<two>(8).extent(0) == 2);
  CHECK(gs::simulate<one>(5).extent(0) == 5);
  CHECK(gs::on_one_device<one>().size() == 1);
}

TEST_CASE("copies of a cluster are the same cluster") {
  const auto c = gs::simulate<one>(2), other = gs::simulate<one>(2);
  const gs::any_cluster copy = c;
  CHECK(copy.same_as(c));
  CHECK_FALSE(copy.same_as(other));
}

TEST_CASE("using a cluster that was moved from throws") {
  gs::any_cluster c = gs::simulate<one>(2);
  const gs::any_cluster moved = std::move(c);
  CHECK(moved.size() == 2);
  CHECK_THROWS_WITH_AS(c.backend(), "cluster: a tensor or cluster is used after it was moved from", gs::error);
}

TEST_CASE("extents as equal as the number of devices allows") {
  CHECK(gs::extents_on<gs::mesh<gs::axis<"a">, gs::axis<"b">>>(6) == std::vector{3, 2});
  CHECK(gs::extents_on<two>(8) == std::vector{2, 4});
  CHECK_THROWS_AS(gs::extents_on<two>(6), gs::error);
}

TEST_CASE("static extents need no number") {
  using all = gs::mesh<gs::axis<"data", 2>, gs::axis<"expert", 4>>;
  using some = gs::mesh<gs::axis<"data", 2>, gs::axis<"expert">, gs::axis<"model", 3>>;
  const auto extents_of = [](const gs::any_cluster& c) {
    std::vector<int> e;
    for (int a = 0; a < c.mesh().rank(); ++a) e.push_back(c.extent(a));
    return e;
  };
  CHECK(extents_of(gs::simulate<all>()) == std::vector{2, 4});
  CHECK(extents_of(gs::simulate<all>(8)) == std::vector{2, 4});
  CHECK(extents_of(gs::simulate<all>({2, 4})) == std::vector{2, 4});
  CHECK(gs::simulate<gs::mesh<>>().size() == 1);
  CHECK(extents_of(gs::simulate<some>(std::vector{5})) == std::vector{2, 5, 3});
  CHECK(extents_of(gs::simulate<some>({2, 5, 3})) == std::vector{2, 5, 3});
  CHECK(extents_of(gs::simulate<some>(30)) == std::vector{2, 5, 3});
  CHECK(extents_of(gs::simulate<two>(std::vector{3})) == std::vector{3, 4});
  CHECK_THROWS_WITH_AS(gs::simulate<all>(4), "cluster: the mesh does not fit 4 devices: axis \"data\" has 2, \"expert\" has 4", gs::error);
  CHECK_THROWS_WITH_AS(gs::simulate<some>(20), "cluster: the mesh does not fit 20 devices: axis \"data\" has 2, \"model\" has 3", gs::error);
  CHECK_THROWS_WITH_AS(gs::simulate<some>({3, 5, 3}), "cluster: axis \"data\" has extent 2 in the program and 3 here", gs::error);
  CHECK_THROWS_WITH_AS(gs::simulate<some>({5, 3}), "cluster: the mesh has 3 axes; extents are given for 2", gs::error);
}

TEST_CASE("a backend of another shape is refused") {
  CHECK_THROWS_WITH_AS(gs::simulate<two>({3, 3}),
                       "cluster: axis \"expert\" has extent 4 in the program and 3 here", gs::error);
  CHECK_THROWS_WITH_AS(gs::simulate<three>(std::vector{2}),
                       "cluster: the mesh has 3 axes; extents are given for 1, and none for \"b\", \"c\"", gs::error);
  CHECK_THROWS_WITH_AS(gs::simulate<two>(std::vector{3, 4, 1}), "cluster: the mesh has 2 axes; extents are given for 3", gs::error);
  CHECK_THROWS_WITH_AS(gs::on_one_device<two>(),
                       "cluster: axis \"expert\" has extent 4 in the program and 1 here", gs::error);
  CHECK_THROWS_AS(gs::simulate<one>(0), gs::error);
  CHECK_THROWS_AS(gs::simulate<one>(std::vector{-2}), gs::error);
}
