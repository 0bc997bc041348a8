// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/backend/simulated.hpp>
#include <gshard/exec/reduce/node_group.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace gs = gshard;
using gs::detail::node_group;
using numbers = std::vector<std::size_t>;

TEST_CASE("node_group: members by node") {
  const gs::simulated b({2, 3}, {{7, 7, 5, 7, 5, 5}});
  const node_group all(b, 0b11, 4);  // node 7: members 0, 1, 3; node 5: members 2, 4, 5
  CHECK(all.size() == 6);
  CHECK(all.me() == 4);
  CHECK(all.nodes() == 2);
  CHECK(all.here() == 1);
  CHECK(all.members(0) == numbers{0, 1, 3});
  CHECK(all.mates() == numbers{2, 4, 5});
  CHECK(all.place(4) == 1);
  CHECK(all.has_mates());
  const node_group row(b, 0b10, 0);  // devices 0, 1, 2: nodes 7, 7, 5
  CHECK(row.nodes() == 2);
  CHECK(row.members(0) == numbers{0, 1});
}

TEST_CASE("node_group: one level if all members are on one node, or none share one, or levels are not wanted") {
  const std::vector<gs::node_map> maps{{}, {{3, 3, 3, 3}}, {{0, 1, 2, 3}}, {{0, 0, 1, 1}, gs::summation::by_member, false}};
  for (const gs::node_map& map : maps) {
    const gs::simulated b({4}, map);
    const node_group g(b, 1, 2);
    CHECK(g.nodes() == 4);
    CHECK_FALSE(g.has_mates());
    CHECK(g.parts().all.size() == 4);
  }
}

TEST_CASE("node_group: a node has one partial sum if its members are a subtree, or if sums go by node") {
  const auto parts = [](const std::vector<int>& nodes, gs::summation how) {
    const gs::simulated b({int(nodes.size())}, {nodes, how});
    const node_group g(b, 1, 0);
    numbers n;
    for (std::size_t k = 0; k < g.nodes(); ++k) n.push_back(g.parts_of(k).size());
    return n;
  };
  CHECK(parts({0, 0, 1, 1}, gs::summation::by_member) == numbers{1, 1});
  CHECK(parts({0, 0, 0, 0, 1, 1}, gs::summation::by_member) == numbers{1, 1});
  CHECK(parts({0, 0, 0, 1, 1, 1}, gs::summation::by_member) == numbers{2, 2});
  CHECK(parts({0, 1, 0, 1}, gs::summation::by_member) == numbers{2, 2});
  CHECK(parts({0, 0, 0, 1, 1, 1}, gs::summation::by_node) == numbers{1, 1});
  CHECK(parts({0, 1, 0, 1}, gs::summation::by_node) == numbers{1, 1});
}

TEST_CASE("held_groups: made anew for another mesh, other axes or other nodes") {
  gs::detail::held_groups groups;
  const gs::simulated flat({2, 2}), nodes({2, 2}, {{0, 0, 1, 1}});
  groups.use(flat, 0b11);
  CHECK(groups.size() == 4);
  CHECK(groups.members() == 4);
  CHECK_FALSE(groups.have_levels());
  groups.use(nodes, 0b11);
  CHECK(groups.have_levels());
  CHECK(groups.have_mates());
  groups.use(nodes, 0b10);  // both members of each group are on one node
  CHECK(groups.members() == 2);
  CHECK_FALSE(groups.have_levels());
}
