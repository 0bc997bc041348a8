// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/all_operations.hpp>
#include <gshard/core/reshard/cost.hpp>

#include <array>
#include <cstdint>

namespace gs = gshard;
namespace op = gs::op;

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

// The largest shard: every sharded dim rounds up.
static_assert(gs::shard_elements(dims, gs::sharding::replicated(2), sizes(15, 7, 2, 2)) == 15 * 7);
static_assert(gs::shard_elements(dims, cut(0, {0}), sizes(15, 7, 2, 2)) == 8 * 7);
static_assert(gs::shard_elements(dims, cut(1, {0, 1}), sizes(15, 7, 2, 3)) == 15 * 2);
static_assert(gs::shard_elements(dims, cut(0, {0}), sizes(2, 1, 8, 1)) == 1 &&
              gs::shard_elements({}, gs::sharding::replicated(0), {}) == 1);

// Bytes that one device receives when a tensor of floats is resharded.
constexpr std::int64_t received(gs::op_ref kind, std::uint32_t axes, const gs::sharding& from, const gs::sharding& to,
                                const gs::extents& e) {
  gs::value v;
  v.dims = dims;
  return gs::bytes_received(kind, axes, v, from, to, e);
}
constexpr gs::sharding whole = gs::sharding::replicated(2);
constexpr gs::sharding pending(gs::sharding s, int axes) {
  s.partial = std::uint8_t(axes);
  return s;
}
constexpr gs::extents large() { return sizes(1024, 1024, 8, 4); }
constexpr std::int64_t b = 4 << 20;  // bytes of the whole tensor

// A group of one sends nothing; a slice never does.
static_assert([] {
  for (const gs::op_ref t : gs::all_operations)
    if (received(t, 1, cut(0, {0}), whole, sizes(64, 64, 1, 4)) != 0 ||
        (!t->collective && received(t, 1, whole, cut(0, {0}), large()) != 0))
      return false;
  return true;
}());
// All except the device's own part. A large sum is a scatter of sums and a gather.
static_assert(received(op::all_gather, 1, cut(0, {0}), whole, large()) == b / 8 * 7 &&
              received(op::all_gather, 2, cut(0, {0, 1}), cut(0, {0}), large()) == b / 8 - b / 32 &&
              received(op::all_to_all, 1, cut(0, {0}), cut(1, {0}), large()) == b / 8 / 8 * 7 &&
              received(op::reduce_scatter, 1, pending(whole, 1), cut(0, {0}), large()) == b / 8 * 7 &&
              received(op::all_reduce, 1, pending(whole, 1), whole, large()) == 2 * (b / 8 * 7));
// The last axis of a dim moves to another dim: the part along both stays.
static_assert(received(op::all_to_all, 2, cut(0, {0, 1}), [] {
                auto s = cut(0, {0});
                s[1].push_back(1);
                return s;
              }(), large()) == b / 32 - b / 32 / 4);
// The device that receives most has no part of its new shard.
static_assert(received(op::collective_permute, 3, cut(0, {0, 1}), cut(0, {1, 0}), large()) == b / 32 &&
              received(op::all_to_all, 3, cut(0, {0}), cut(0, {1}), large()) == b / 4);
// A small sum is gathered.
static_assert(received(op::all_reduce, 1, pending(whole, 1), whole, sizes(4, 4, 8, 1)) == 64 * 7);

// Unknown numbers are assumed: letters have one extent, derived dims follow their rule, axes have one extent.
static_assert([] {
  std::array<gs::dim, 4> table{};
  table[0].letter = 'E';
  table[1].letter = 'M';
  table[2] = {.what = gs::dim::kind::product, .first = 0, .second = 1};
  table[3] = {.what = gs::dim::kind::fixed, .number = 2};
  const gs::mesh_shape mesh = gs::mesh<gs::axis<"x", 3>, gs::axis<"y">>::shape;
  const gs::extents e = gs::detail::assume_extents(table, mesh, gs::dims{{'E', 5}});
  return e.dim(0) == 5 && e.dim(1) > 1 && e.dim(2) == 5 * e.dim(1) && e.dim(3) == 2 && e.axis(0) == 3 &&
         e.axis(1) > 1 && e.known_axes == 1;
}());

}  // namespace
