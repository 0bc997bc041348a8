// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/cost/step_time.hpp>
#include <gshard/core/program/program.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/sim/network/torus_mesh.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>

namespace gs = gshard;
namespace op = gs::op;
using gs::none, gs::P;

namespace {

constexpr gs::torus pod(int x, int y, int cores, bool wrap = true) {
  gs::torus t;
  t.dims = 2;
  t.extents = {x, y, 1};
  t.wrap = {wrap, wrap, true};
  t.cores = cores;
  return t;
}
constexpr bool near(double x, double y) { return x - y <= 1e-9 * y && y - x <= 1e-9 * y; }
constexpr gs::torus_ring ring(int extent, int stride, bool wrap, int dim = 0) { return {extent, stride, wrap, dim}; }

// One axis over everything: row-major, the cores of a chip first.
constexpr gs::torus_mesh line(pod(4, 4, 2));
static_assert(line.valid() && line.rank() == 1 && line.extent(0) == 32 && line.group(1) == all_of(pod(4, 4, 2)));
static_assert(line.place(0) == gs::torus_place{} && line.place(1).core == 1 && line.place(11).at == std::array{1, 1, 0} &&
              line.place(11).core == 1);
static_assert(line.chip(31) == 15 && line.hops(1, 2) == 1 && line.hops(0, 1) == 0 && line.hops(7, 8) == 2);
static_assert(line.ring_hops(1) == 2 && gs::torus_mesh(line).follow_snake(0).ring_hops(1) == 1);

// A snake is closed if its number of rows is even and its ends wrap. Otherwise it is longer.
constexpr int snake_hops(int x, int y, bool wrap) { return gs::torus_mesh(pod(x, y, 1, wrap)).follow_snake(0).ring_hops(1); }
static_assert(snake_hops(4, 8, true) == 1 && snake_hops(4, 5, true) == 1 && snake_hops(4, 8, false) == 3 && snake_hops(3, 8, true) == 2);

// Two axes: the last one takes the cores, then the last dimension. Parts of one axis are adjacent.
constexpr gs::torus_mesh two(pod(32, 32, 2), {32, 64});
static_assert(two.valid() && two.group(1)[0] == ring(32, 1, true) && two.group(1).sharers == 2 && two.group(2).cores == 2 &&
              two.group(2).sharers == 1 && two.group(3) == all_of(pod(32, 32, 2)));
constexpr gs::torus_mesh narrow(pod(32, 32, 2), {128, 16});
static_assert(narrow.valid() && narrow.group(2)[0] == ring(8, 1, false, 1) && narrow.group(1).count == 2 &&
              narrow.group(1)[1] == ring(4, 8, true, 1) && narrow.group(3) == all_of(pod(32, 32, 2)));
static_assert(!gs::torus_mesh(pod(32, 32, 2), {3, 5}).valid() && !gs::torus_mesh(pod(4, 4, 1), {8}).valid() &&
              !gs::torus_mesh(pod(4, 4, 1), {32}).valid() && gs::torus_mesh(pod(4, 4, 1), {1, 16, 1}).valid());

// Specified axis by axis.
constexpr gs::torus_mesh said = gs::torus_mesh(pod(8, 4, 2), {}).add({{1}}).add({{0}, {gs::torus_part::cores}});
static_assert(said.valid() && said.extent(0) == 4 && said.extent(1) == 16 && said.place(16 + 3).at == std::array{1, 1, 0} &&
              said.place(16 + 3).core == 1 && said.group(2).cores == 2);
static_assert(!gs::torus_mesh(pod(8, 4, 2), {}).add({{1}}).add({{1}, {gs::torus_part::cores}}).valid() &&
              gs::torus_mesh(pod(8, 4, 1), {}).add({{0, 2, 4}, {1, 2, 1}}).add({{1, 2, 2}, {0, 4, 1}}).valid());

// More axes than a mesh may have, more parts than an axis or a group may have, and dimensions that do not exist.
constexpr bool valid_with(int axes, int parts, int dim) {
  gs::torus t;
  t.extents[0] = 1 << (axes * parts);
  gs::torus_mesh m(t, {});
  for (int a = 0; a < axes; ++a)
    parts == 9   ? m.add({{dim, 2, 256}, {0, 2, 128}, {0, 2, 64}, {0, 2, 32}, {0, 2, 16}, {0, 2, 8}, {0, 2, 4}, {0, 2, 2}, {0, 2, 1}})
    : parts == 3 ? m.add({{dim, 2, 4 << (3 * a)}, {0, 2, 2 << (3 * a)}, {0, 2, 1 << (3 * a)}})
                 : m.add({{dim, 2, 1 << a}});
  return m.valid();
}
static_assert(valid_with(8, 1, 0) && !valid_with(9, 1, 0) && !valid_with(1, 9, 0) && valid_with(5, 3, 0) && !valid_with(6, 3, 0) &&
              !valid_with(1, 1, 1) && !valid_with(1, 1, -2));
static_assert(!gs::torus_mesh(pod(32, 32, 1), {2, 2, 2, 2, 2, 2, 2, 2, 4}).valid());

// Fits only a plan with exactly these extents.
constexpr bool fits(const gs::torus_mesh& m, std::initializer_list<int> extents) {
  return m.fits(gs::list_view<int>(extents.begin(), extents.size()));
}
static_assert(fits(two, {32, 64}) && !fits(two, {64, 32}) && !fits(two, {2048}) && !fits(two, {32, 64, 1}) && !fits(line, {64}) &&
              !fits(gs::torus_mesh(pod(32, 32, 2), {3, 5}), {3, 5}));

// Every device has its own place.
constexpr bool all_differ(const gs::torus_mesh& m) {
  for (int i = 0; i < m.topology().devices(); ++i)
    for (int j = 0; j < i; ++j)
      if (m.place(i) == m.place(j)) return false;
  return true;
}
static_assert(all_differ(line) && all_differ(said) && all_differ(gs::torus_mesh(pod(4, 5, 2)).follow_snake(0)) &&
              all_differ(gs::torus_mesh(pod(4, 8, 2), {2, 16, 2})));

// Prices are converted from received bytes to whole tensors, with one launch each.
constexpr gs::torus t = pod(8, 8, 2);
constexpr gs::torus_mesh one(t);
constexpr double seconds(gs::op_ref kind, std::int64_t bytes) { return one.seconds(kind, 1, {}, bytes) - t.launch; }
constexpr double V = 128 * 65536;
constexpr std::int64_t received = 127 * 65536;
static_assert(near(seconds(op::all_gather, received), all_gather_seconds(t, all_of(t), V, t.gather)) &&
              near(seconds(op::reduce_scatter, received), seconds(op::all_gather, received)) &&
              near(seconds(op::all_reduce, 2 * received), 2 * seconds(op::all_gather, received)) &&
              near(seconds(op::all_to_all, received), all_to_all_seconds(t, all_of(t), V, t.exchange, t.ties)));
static_assert(near(seconds(op::collective_permute, 1 << 20), 2 * t.hop + (1 << 20) / t.link_bytes) &&
              near(seconds(op::looped_einsum, received), 127 * (2 * t.hop + 65536 / t.link_bytes)));
static_assert(one.seconds(op::all_gather, 1, {}, 0) == 0 &&
              near(gs::torus_mesh(t, {64, 2}).seconds(op::all_reduce, 2, {}, 4096), t.launch + 4096 / t.core_bytes));

// A plan on a torus: the arithmetic of a cluster, the collectives of the torus.
using mesh = gs::mesh<gs::axis<"x", 128>>;
inline constexpr auto product = [](auto& m, auto x) {
  return gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", P<"x", none>{}, gs::init::zeros()));
};
using program = gs::program<product, mesh, gs::in<"BM", P<none, "x">>>;
constexpr double communicate() {
  const gs::extents e = program::plan.bind({{'B', 1024}, {'M', 1024}, {'H', 1024}}, std::array{128});
  return gs::price(program::plan, e, {.flops = 1e15, .memory_bytes = 1e15, .link_bytes = 1e30, .start = 0}, one).communicate;
}
static_assert(program::plan.count(op::all_reduce) == 1);
static_assert(near(communicate(), t.launch + all_reduce_seconds(t, all_of(t), 4.0 * 1024 * 1024, t.gather)));

}  // namespace
