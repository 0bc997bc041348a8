// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/network/torus.hpp>

#include <array>

namespace gs = gshard;
using gs::all_to_all_scheme, gs::gather_scheme, gs::tie_policy;

namespace {

constexpr double B = 70e9, a = 1e-6;

/// Chips in one to three dimensions. All dimensions wrap, or none.
constexpr gs::torus chips(int x, int y = 1, int z = 1, int cores = 1, bool wrap = true) {
  gs::torus t;
  t.dims = z > 1 ? 3 : y > 1 ? 2 : 1;
  t.extents = {x, y, z};
  t.wrap = {wrap, wrap, wrap};
  t.cores = cores;
  return t;
}
constexpr bool near(double x, double y, double within = 1e-9) { return x - y <= within * y && y - x <= within * y; }

constexpr double gather(const gs::torus& t, double v, gather_scheme s) { return gs::all_gather_seconds(t, all_of(t), v, s); }
constexpr double exchange(const gs::torus& t, double s, all_to_all_scheme how, tie_policy ties) {
  return gs::all_to_all_seconds(t, all_of(t), s, how, ties);
}

// Gathers of V bytes: one ring in one direction and in both, x then y, all four links; hop by hop.
constexpr bool gathers(int d, double V) {
  const double N = d * d;
  const gs::torus ring = chips(d), square = chips(d, d);
  return near(gather(ring, V, gather_scheme::one_way), (d - 1) * (a + V / (d * B))) &&
         near(gather(ring, V, gather_scheme::both_ways), (d - 1) * (a + V / (2 * d * B))) &&
         near(gather(ring, V, gather_scheme::all_links), (d - 1) * (a + V / (2 * d * B))) &&
         near(gather(square, V, gather_scheme::both_ways), (d - 1) * (2 * a + V / (2 * N * B) + V / (2 * d * B))) &&
         near(gather(square, V, gather_scheme::all_links), (d - 1) * (2 * a + V / (4 * N * B) + V / (4 * d * B))) &&
         near(gs::all_reduce_seconds(square, all_of(square), V, gather_scheme::all_links),
              2 * gather(square, V, gather_scheme::all_links)) &&
         near(gs::reduce_scatter_seconds(square, all_of(square), V, gather_scheme::both_ways), gather(square, V, gather_scheme::both_ways));
}
static_assert(gathers(4, 65536) && gathers(8, 8 << 20) && gathers(16, 32 << 20) && gathers(32, 65536) &&
              gathers(32, 32 << 20) && gathers(5, 1e6));

// Streamed gathers: the hops of the longest route, then the bytes of the busiest link. If extents differ, the longer rings count.
constexpr double streamed(const gs::torus& t, double V) { return gather(t, V, gather_scheme::streamed); }
static_assert(near(streamed(chips(16), 1e9), 8 * a + 1e9 * 15 / 16 / (2 * B)) &&
              near(streamed(chips(15), 1e9), 7 * a + 1e9 * 14 / 15 / (2 * B)) &&
              near(streamed(chips(16, 16), 1e9), 16 * a + 1e9 * 255 / 256 / (4 * B)) &&
              near(streamed(chips(8, 8, 8), 1e9), 12 * a + 1e9 * 511 / 512 / (6 * B)) &&
              near(streamed(chips(4, 2), 32 * B), 3 * a + (1.5 + 1.5 * 2) * 2) && near(streamed(chips(16, 16), 1), 16 * a, 1e-4) &&
              near(streamed(chips(16, 1, 1, 1, false), 1e9), 15 * a + 1e9 * 15 / 16 / B) &&
              near(streamed(chips(16, 8, 1, 1, false), 256 * B), 22 * a + 15.0 * (1 + 8)));

// With three different extents, a step takes as long as its busiest link. Links along the first dimension take 38.5 in total. In two steps,
// links along the second dimension carry more.
static_assert(near(streamed(chips(8, 4, 2), 192 * B), 7 * a + 40));

// All-to-alls that saturate the links.
constexpr bool exchanges(int d, double S) {
  const gs::torus t = chips(d, d);
  const double one_way = S * (d + 2) / (8 * B), split = S * d / (8 * B);
  return near(exchange(t, S, all_to_all_scheme::by_dimension, tie_policy::one_way), 2 * (a + one_way)) &&
         near(exchange(t, S, all_to_all_scheme::all_orders, tie_policy::one_way), 2 * (a + one_way / 2)) &&
         near(exchange(t, S, all_to_all_scheme::direct, tie_policy::one_way), a + one_way) &&
         near(exchange(t, S, all_to_all_scheme::direct, tie_policy::split), a + split) &&
         near(exchange(t, S, all_to_all_scheme::all_orders, tie_policy::split), 2 * (a + split / 2));
}
static_assert(exchanges(4, 32 << 20) && exchanges(8, 8 << 20) && exchanges(16, 32 << 20) && exchanges(32, 1 << 30));

// All-to-alls so small that the hops matter.
static_assert(near(exchange(chips(32, 32), 1, all_to_all_scheme::by_dimension, tie_policy::one_way), 2 * 16 * a, 1e-4) &&
              near(exchange(chips(32, 32), 1, all_to_all_scheme::direct, tie_policy::one_way), 32 * a, 1e-4) &&
              near(exchange(chips(32), 1, all_to_all_scheme::direct, tie_policy::one_way), 16 * a, 1e-4));

// The bound of the links, for 16 to 2048 devices, two on each chip: the microseconds for 8 MB of each.
constexpr double microseconds(int x, int y, bool wrap) {
  gs::torus t = chips(x, y, 1, 2, wrap);
  t.hop = 0;
  return 1e6 * exchange(t, 8e6, all_to_all_scheme::direct, tie_policy::split);
}
constexpr bool is(double x, int rounded) { return x > rounded - 0.5 && x < rounded + 0.5; }
static_assert(is(microseconds(4, 2, true), 114) && is(microseconds(4, 4, true), 114) && is(microseconds(8, 4, true), 229) &&
              is(microseconds(8, 8, true), 229) && is(microseconds(16, 8, true), 457) && is(microseconds(16, 16, true), 457) &&
              is(microseconds(32, 16, true), 914) && is(microseconds(32, 32, true), 914));
static_assert(is(microseconds(4, 2, false), 229) && is(microseconds(8, 8, false), 457) && is(microseconds(16, 8, false), 914) &&
              is(microseconds(32, 32, false), 1829));

// An all-reduce of 8 MB: on four links, along one axis in both directions, on one ring in one direction.
constexpr double sum(const gs::torus& t, gather_scheme s) { return gs::all_reduce_seconds(t, all_of(t), 8e6, s); }
constexpr gs::torus without_hops(gs::torus t) {
  t.hop = 0;
  return t;
}
static_assert(near(sum(without_hops(chips(512, 512)), gather_scheme::all_links), 57.1e-6, 0.01) &&
              near(sum(without_hops(chips(512)), gather_scheme::both_ways), 114.3e-6, 0.01) &&
              near(sum(without_hops(chips(512)), gather_scheme::one_way), 228.6e-6, 0.01));

// Open rings take twice as long for large messages. Three dimensions have six links. If extents differ, the longer ring counts, and the
// slowest part of a phase.
static_assert(near(gather(chips(16, 16, 1, 1, false), 1e9, gather_scheme::all_links),
                   2 * gather(chips(16, 16), 1e9, gather_scheme::all_links), 0.01));
static_assert(near(exchange(chips(16, 16, 1, 1, false), 1e9, all_to_all_scheme::direct, tie_policy::split),
                   2 * exchange(chips(16, 16), 1e9, all_to_all_scheme::direct, tie_policy::split), 0.01));
static_assert(near(gather(chips(16, 16, 16), 1e11, gather_scheme::all_links), 1e11 / (6 * B), 0.01));
static_assert(near(exchange(chips(8, 8, 8), 1e9, all_to_all_scheme::direct, tie_policy::split), 1e9 * 8 / (8 * B), 0.01));
static_assert(near(exchange(chips(16, 4), 1e9, all_to_all_scheme::direct, tie_policy::split), 1e9 * 16 / (8 * B), 0.01));
static_assert(near(gather(chips(16, 4), 64 * B, gather_scheme::all_links), 15 * (a + 0.25) + 15 * (a + 1.0), 1e-6));

// Messages that share links share their bandwidth: cores of a chip in one group, or in two interleaved groups.
constexpr gs::torus_group between = [] {
  gs::torus_group g;
  g.add({4, 2, true});
  return g;
}();
static_assert(near(gs::all_gather_seconds(chips(8), between, 4 * B, gather_scheme::streamed), 4 * a + 3.0));
static_assert(between.chips() == 4 && near(gs::all_gather_seconds(chips(8), between, 4 * B, gather_scheme::both_ways), 3 * (2 * a + 1.0)));
static_assert(near(exchange(chips(8, 8, 1, 2), 1e8, all_to_all_scheme::direct, tie_policy::split) - a,
                   2 * (exchange(chips(8, 8), 1e8, all_to_all_scheme::direct, tie_policy::split) - a)));
static_assert(gather(chips(8, 8, 1, 2), 1e8, gather_scheme::all_links) == gather(chips(8, 8), 1e8, gather_scheme::all_links));

// A shift takes as long as one link. A permutation takes at most as long as half a ring that sends to one chip.
static_assert(near(gs::shift_seconds(chips(8, 8), all_of(chips(8, 8)), B, 2), 1 + 2 * a) &&
              near(gs::permutation_seconds(chips(8, 8), all_of(chips(8, 8)), B), 4 + 8 * a));

// A fitted efficiency slows only all-to-alls.
constexpr gs::torus third = [] {
  gs::torus t = chips(16, 16);
  t.all_to_all_efficiency = 1.0 / 3;
  return t;
}();
static_assert(near(exchange(third, 1e9, all_to_all_scheme::direct, tie_policy::split),
                   3 * exchange(chips(16, 16), 1e9, all_to_all_scheme::direct, tie_policy::split), 0.001) &&
              gather(third, 1e9, gather_scheme::all_links) == gather(chips(16, 16), 1e9, gather_scheme::all_links));

// Sums of 32 MB on 4x2 chips, 16 devices, and on 32x32, 2048 devices.
static_assert(gs::all_reduce_seconds(chips(32, 32), all_of(chips(32, 32)), 32e6, gather_scheme::streamed) <=
              1.2 * gs::all_reduce_seconds(chips(4, 2), all_of(chips(4, 2)), 32e6, gather_scheme::streamed));

// Distances.
static_assert(chips(8, 8).hops(0, 1, 7) == 2 && chips(8, 8, 1, 1, false).hops(0, 1, 7) == 6 && chips(4, 3, 2, 2).devices() == 48);

}  // namespace
