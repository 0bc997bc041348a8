// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/search/shard_choice.hpp>

namespace gs = gshard;

namespace {

// No limit, and a limit that may be reached.
static_assert([] {
  gs::shard_choice_view v;
  const bool any = v.fits(1LL << 60);
  v.memory_limit = 8;
  return any && v.fits(8) && !v.fits(9);
}());

// A choice is assigned to a program by the numbers of its tensors. Its table is printed with its summary.
static_assert([] {
  gs::graph g;
  g.values = gs::list<gs::value>(3);
  gs::shard_choice c;
  gs::layout_choice t;
  t.value = 1;
  t.layout = gs::sharding::replicated(2);
  t.layout[1].push_back(0);
  c.tensors.push_back(t);
  c.summary.evaluations = 7;
  c.apply_to(g);
  return g.at(1).layout.same_layout(t.layout) && g.at(0).layout.used() == 0 && c.view().tensors.size() == 1 && c.view().evaluations == 7;
}());

}  // namespace
