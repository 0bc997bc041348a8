// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/cluster/rank_order.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace gs = gshard;
using rank_list = std::vector<int>;

TEST_CASE("rank_order: ranks of a node are successive, in the order of the nodes' first ranks") {
  CHECK(gs::detail::ranks_by_node(rank_list{0, 0, 1, 1}) == rank_list{0, 1, 2, 3});
  CHECK(gs::detail::ranks_by_node(rank_list{7, 3, 7, 3}) == rank_list{0, 2, 1, 3});
  CHECK(gs::detail::ranks_by_node(rank_list{}) == rank_list{});
}

TEST_CASE("rank_order: the innermost axis takes successive ranks") {
  const rank_list by_node{0, 2, 4, 1, 3, 5}, mesh{2, 3};
  CHECK(gs::detail::ranks_by_device(mesh, rank_list{0, 1}, by_node) == by_node);
  CHECK(gs::detail::ranks_by_device(mesh, rank_list{1, 0}, by_node) == rank_list{0, 4, 3, 2, 1, 5});
}

TEST_CASE("rank_order: a list that is not an order of the axes is refused") {
  const rank_list mesh{2, 3};
  gs::detail::check_axis_order(mesh, rank_list{1, 0});
  for (const rank_list& wrong : {rank_list{0}, {0, 0}, {0, 2}, {0, 1, 2}, {-1, 0}})
    CHECK_THROWS_WITH_AS(gs::detail::check_axis_order(mesh, wrong), doctest::Contains("is not an order of the 2 axes of the mesh 2x3"),
                         gs::error);
}
