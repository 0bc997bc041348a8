// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/graph.hpp>
#include <gshard/ops/user/custom.hpp>

namespace gs = gshard;

// A node has the name of its user's operation, other nodes have the name of their kind.
inline constexpr gs::custom_operation mine{.name = "mine"};
static_assert([] {
  gs::node n;
  n.kind = gs::op::custom;
  n.attr.custom = &mine;
  if (gs::name_of(n) != "mine") return false;
  n.kind = gs::op::map;
  return gs::name_of(n) == "map";
}());
static_assert(gs::may_fail(gs::op::custom) && gs::traits(gs::op::custom).user_code);
