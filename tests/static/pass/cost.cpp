// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/pass/cost.hpp>

#include <array>
#include <cstdint>

namespace gs = gshard;
using gs::op;

namespace {

constexpr gs::dim_list dims = [] {
  gs::dim_list l;
  l.push_back(0);
  l.push_back(1);
  return l;
}();
constexpr gs::extents sizes(std::int64_t a, std::int64_t b, int x, int y) {
  gs::extents e;
  e.dims = {a, b};
  e.axes = {x, y};
  return e;
}
constexpr gs::sharding cut(int dim, std::initializer_list<int> axes) {
  gs::sharding s = gs::sharding::replicated(2);
  for (int a : axes) s[dim].push_back(a);
  return s;
}

static_assert(sizes(1, 1, 4, 3).devices(0b01) == 4 && sizes(1, 1, 4, 3).devices(0b11) == 12 &&
              sizes(1, 1, 4, 3).devices(0) == 1);

// The largest shard: every cut rounds up.
static_assert(gs::shard_elements(dims, gs::sharding::replicated(2), sizes(15, 7, 2, 2)) == 15 * 7);
static_assert(gs::shard_elements(dims, cut(0, {0}), sizes(15, 7, 2, 2)) == 8 * 7);
static_assert(gs::shard_elements(dims, cut(1, {0, 1}), sizes(15, 7, 2, 3)) == 15 * 2);
static_assert(gs::shard_elements(dims, cut(0, {0}), sizes(2, 1, 8, 1)) == 1 &&
              gs::shard_elements({}, gs::sharding::replicated(0), {}) == 1);

// A group of one sends nothing; a slice never does.
static_assert([] {
  for (const gs::op_traits& t : gs::op_table)
    if (gs::bytes_sent(t.kind, 1000, 1) != 0 || (!t.collective && gs::bytes_sent(t.kind, 1000, 8) != 0))
      return false;
  return true;
}());
// Of a shard of b bytes: all but the own part; a large sum is a scatter of sums and a gather.
constexpr std::int64_t b = 1 << 20;
static_assert(gs::bytes_sent(op::all_to_all, b, 8) == b / 8 * 7 &&
              gs::bytes_sent(op::reduce_scatter, b, 8) == b / 8 * 7);
static_assert(gs::bytes_sent(op::all_gather, b / 8, 8) == b / 8 * 7 &&
              gs::bytes_sent(op::collective_permute, b, 8) == b);
static_assert(gs::bytes_sent(op::all_reduce, b, 8) ==
              gs::bytes_sent(op::reduce_scatter, b, 8) + gs::bytes_sent(op::all_gather, b / 8, 8));

// What is not known yet is assumed: letters one extent, derived dims by their rule, axes one extent.
static_assert([] {
  std::array<gs::dim, 4> table{};
  table[0].letter = 'E';
  table[1].letter = 'M';
  table[2] = {.what = gs::dim::kind::product, .first = 0, .second = 1};
  table[3] = {.what = gs::dim::kind::fixed, .number = 2};
  const gs::mesh_shape mesh = gs::mesh<gs::axis<"x", 3>, gs::axis<"y">>::shape;
  const gs::extents e = gs::detail::assume_extents(table, mesh, gs::dims{{'E', 5}});
  return e.dim(0) == 5 && e.dim(1) > 1 && e.dim(2) == 5 * e.dim(1) && e.dim(3) == 2 && e.axis(0) == 3 &&
         e.axis(1) > 1;
}());

}  // namespace
