// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The time of collectives on a torus of chips (a TPU pod), in closed form.
//
// Every chip has a link to each neighbor in each direction, and all links work at once. Messages go dimension by dimension, the shortest
// way. In the formulas, n is the extent of a ring, a the seconds of a hop, and B the bytes per second of a link, one way. V is the bytes of
// the complete tensor of a gather. S is the bytes that a device sends in total, including its own part. N is the number of chips.

#include <gshard/core/base/list.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// The direction of a message if both ways around a ring are equally short: up, or half of it each way.
enum class tie_policy : std::uint8_t { one_way, split };

/// How a gather uses the links.
///
/// - one_way: dimension after dimension, one way around each ring.
/// - both_ways: the same, with half of the data each way.
/// - all_links: the data have as many equal parts as there are dimensions. Each part begins with another dimension and goes both ways, so
///   that all links are busy. A phase begins when all parts have finished the previous one.
/// - streamed: the same parts. Every piece goes to the nearer half of a ring each way. It is passed on in the step after its arrival, also
///   along the next rings, so no phase waits for the previous one.
enum class gather_scheme : std::uint8_t { one_way, both_ways, all_links, streamed };

/// How an all-to-all uses the links.
///
/// - by_dimension: dimension after dimension.
/// - all_orders: as many equal parts as there are dimensions, each beginning with another one, all parts phase by phase.
/// - direct: every message at once, from chip to chip.
enum class all_to_all_scheme : std::uint8_t { by_dimension, all_orders, direct };

/// A torus of chips in 1 to 3 dimensions, or a mesh of chips along dimensions that do not wrap. The defaults are a TPU v3 as in arXiv
/// 2304.01433, with the latencies of a TPU v5p, rounded. @see find_preset for others and their sources.
struct torus {
  static constexpr int max_dims = 3;

  int dims = 1;
  std::array<int, max_dims> extents{1, 1, 1};  ///< chips
  std::array<bool, max_dims> wrap{true, true, true};
  int cores = 1;               ///< devices per chip, which share its links
  double link_bytes = 70e9;    ///< bytes per second of a link, one way
  double hop = 1e-6;           ///< seconds from a chip to its neighbor
  double launch = 5e-6;        ///< seconds that the start of a collective takes
  double core_bytes = 450e9;   ///< bytes per second between the cores of a chip
  double all_to_all_efficiency = 1;  ///< of the links in an all-to-all; below 1 it is fitted to measured runs, not physical
  tie_policy ties = tie_policy::split;
  gather_scheme gather = gather_scheme::streamed;
  all_to_all_scheme exchange = all_to_all_scheme::direct;

  constexpr bool operator==(const torus&) const = default;

  constexpr int extent(int d) const { return extents[std::size_t(d)]; }
  constexpr int chips() const {
    int n = 1;
    for (int d = 0; d < dims; ++d) n *= extent(d);
    return n;
  }
  constexpr int devices() const { return chips() * cores; }
  /// Hops between two coordinates of a dimension.
  constexpr int hops(int d, int from, int to) const {
    const int ahead = from < to ? to - from : from - to, n = extent(d);
    return wrap[std::size_t(d)] && n - ahead < ahead ? n - ahead : ahead;
  }
};

/// The chips along one dimension that take part in a collective: `extent` of them, each `stride` hops from the next. The chips in between
/// belong to other groups with the same collective at the same time, so `stride` groups share every link.
struct torus_ring {
  int extent = 1;
  int stride = 1;
  bool wrap = true;  ///< the last is a neighbor of the first
  int dim = 0;       ///< of the torus; the time does not depend on it

  constexpr bool operator==(const torus_ring&) const = default;
};

/// The devices of a collective: the chips of all coordinates along some rings, and `cores` of each chip.
struct torus_group {
  static constexpr int max_rings = 16;

  std::array<torus_ring, max_rings> rings{};  ///< of at least 2 chips each
  int count = 0;
  int cores = 1;    ///< of each chip in the group
  int sharers = 1;  ///< groups on each chip, which share its links

  constexpr bool operator==(const torus_group&) const = default;

  constexpr void add(const torus_ring& r) {
    if (r.extent > 1) rings.at(std::size_t(count++)) = r;
  }
  constexpr const torus_ring& operator[](int i) const { return rings[std::size_t(i)]; }
  constexpr int chips() const {
    int n = 1;
    for (int i = 0; i < count; ++i) n *= rings[std::size_t(i)].extent;
    return n;
  }
  constexpr int devices() const { return chips() * cores; }
};

/// All devices of a torus.
constexpr torus_group all_of(const torus& t) {
  torus_group g;
  for (int d = 0; d < t.dims; ++d) g.add({t.extent(d), 1, t.wrap[std::size_t(d)], d});
  g.cores = t.cores;
  return g;
}

namespace detail {

constexpr double longer(double a, double b) { return a < b ? b : a; }

/// The time of phases one after the other, each as long as its slowest part. Part i goes along ring (i + p) % count in phase p.
/// seconds(ring, chips gathered before) is the time of one part.
template <class Seconds>
constexpr double in_phases(const torus_group& g, int parts, Seconds seconds) {
  double total = 0;
  for (int phase = 0; phase < g.count; ++phase) {
    double slowest = 0;
    for (int part = 0; part < parts; ++part) {
      int before = 1;
      for (int p = 0; p < phase; ++p) before *= g[(part + p) % g.count].extent;
      slowest = longer(slowest, seconds(g[(part + phase) % g.count], before));
    }
    total += slowest;
  }
  return total;
}

/// The number of messages that cross the busiest link, if every chip of a ring sends one h steps along it. On a wrapped ring all links are
/// equal; on an open ring the middle link is the busiest.
constexpr double crossings(const torus_ring& r, tie_policy ties, int h) {
  if (!r.wrap) return h < r.extent - h ? h : r.extent - h;
  return 2 * h == r.extent && ties == tie_policy::split ? 0.5 * h : h;
}
constexpr int farthest(const torus_ring& r) { return r.wrap ? r.extent / 2 : r.extent - 1; }

/// The number of chips h steps away from a chip of a wrapped ring, or from the end of an open one.
constexpr int chips_at(const torus_ring& r, int h) { return h == 0 || !r.wrap || 2 * h == r.extent ? 1 : 2; }

/// Seconds until a link has finished its work: work[h] bytes arrive at time h * hop. The link is never idle while it has work, so the end
/// is the largest over h of h * hop + (all work from h on) / bytes per second.
constexpr double drained(const list<double>& work, double hop, double bytes_per_second) {
  double rest = 0, end = 0;
  for (std::size_t h = work.size(); h-- > 0;) {
    rest += work[h];
    if (rest > 0) end = longer(end, double(h) * hop + rest / bytes_per_second);
  }
  return end;
}

/// Moves work along a ring. `work` is indexed by the hops that it has made. work[w] goes h steps further, multiplied by count(h), for all h
/// from `first`.
template <class Count>
constexpr void spread(list<double>& work, const torus_ring& r, int first, Count count) {
  list<double> after(work.size() + std::size_t(farthest(r) * r.stride), 0.0);
  for (std::size_t w = 0; w < work.size(); ++w)
    for (int h = first; h <= farthest(r) && work[w] > 0; ++h) after[w + std::size_t(h * r.stride)] += work[w] * count(h);
  work.swap(after);
}
constexpr void spread_to_all(list<double>& work, const torus_ring& r) {
  spread(work, r, 0, [&](int h) { return chips_at(r, h); });
}

/// Steps from neighbor to neighbor on the longest route between two chips of a group.
constexpr int steps_of(const torus_group& g) {
  int steps = 0;
  for (int i = 0; i < g.count; ++i) steps += farthest(g[i]);
  return steps;
}

/// Bytes over a link of ring i in each step of a streamed gather of `whole` bytes; none in step 0. A link of a wrapped ring carries the
/// pieces of the chips that are nearer in its direction, in order of distance. For a tie it carries half a piece. A link of an open ring
/// carries the pieces of the `behind` chips behind it. In the parts that begin with other rings, each piece comes with the pieces that its
/// chip received along these rings. On an open ring one piece arrives in every step, as its ends send them. A chip at which two pieces
/// arrive sends one of them later.
constexpr list<double> streamed_steps(const torus_group& g, int i, int behind, double whole) {
  const double piece = whole / g.chips() / g.count * g.sharers;
  list<double> along(std::size_t(farthest(g[i])) + 1, 0.0), all(std::size_t(steps_of(g)) + 1, 0.0);
  for (int h = 1; h <= farthest(g[i]); ++h) along[std::size_t(h)] = g[i].wrap ? 0.5 * piece * chips_at(g[i], h) : h <= behind ? piece : 0;
  for (int before = 1;; ++before) {
    for (std::size_t h = 0; h < along.size(); ++h) all[h] += along[h];
    if (before == g.count) return all;
    const torus_ring& r = g[(i + g.count - before) % g.count];
    spread_to_all(along, {r.extent, 1, r.wrap});
  }
}

/// The time of a streamed gather: every step takes as long as its busiest links. On an open ring that is the last link.
constexpr double gather_step_by_step(const torus& t, const torus_group& g, double whole) {
  list<double> slowest(std::size_t(steps_of(g)) + 1, 0.0);
  for (int i = 0; i < g.count; ++i) {
    const list<double> bytes = streamed_steps(g, i, g[i].extent - 1, whole);
    for (std::size_t s = 1; s < slowest.size(); ++s) slowest[s] = longer(slowest[s], g[i].stride * (t.hop + bytes[s] / t.link_bytes));
  }
  double total = 0;
  for (const double s : slowest) total += s;
  return total;
}

}  // namespace detail

/// Seconds of an all_gather without its launch: every device of a group gets a complete tensor of `whole` bytes, of which each has an equal
/// piece.
///
/// One ring, one way: (n-1)(a + V/(nB)); both ways: (n-1)(a + V/(2nB)). Several rings, one after the other: each phase begins with the data
/// gathered in the phases before. On x times y chips both ways that is (x-1)(a + V/(2xyB)) + (y-1)(a + V/(2yB)). On all links of k rings
/// each of k orders takes V/k, and a phase takes as long as its slowest order.
///
/// Streamed: D steps between neighbors. Each takes a hop and the bytes of the busiest link in it. On one ring, or two that are both wrapped
/// or both open, that is D a + L/B, with L the bytes of the busiest link. On k wrapped rings of one extent n, D = k floor(n/2) and L =
/// V(1-1/N)/(2k). On an open ring the last link carries the pieces of all chips but one: n-1 steps of a complete piece. That is about twice
/// as long as on a wrapped ring. The cores of a chip share the received data.
///
/// The event simulation of the same messages takes just as long, on wrapped and open rings of any extents. No two messages of a gather or a
/// sum are on one link at one time. On three open rings of different extents, a streamed gather ends up to 2 % earlier: not every chip
/// waits for the slowest link of a step. @see all_gather_messages
constexpr double all_gather_seconds(const torus& t, const torus_group& g, double whole, gather_scheme scheme) {
  if (scheme == gather_scheme::streamed) return detail::gather_step_by_step(t, g, whole);
  const int parts = scheme == gather_scheme::all_links ? g.count : 1;
  return detail::in_phases(g, parts, [&](const torus_ring& r, int before) {
    const int ways = scheme != gather_scheme::one_way && r.wrap ? 2 : 1;
    const double piece = whole * before / g.chips() / parts / ways * r.stride * g.sharers;
    return (r.extent - 1) * (r.stride * t.hop + piece / t.link_bytes);
  });
}

/// Seconds of a reduce_scatter: every device gets its piece of the sum of one tensor of `whole` bytes per device. A gather run backwards.
constexpr double reduce_scatter_seconds(const torus& t, const torus_group& g, double whole, gather_scheme scheme) {
  return all_gather_seconds(t, g, whole, scheme);
}

/// Seconds of an all_reduce: a reduce_scatter, then a gather. At large V on d times d wrapped chips with all links: V/(2B) for any d, plus
/// the hops: 4(d-1), streamed 2d.
constexpr double all_reduce_seconds(const torus& t, const torus_group& g, double whole, gather_scheme scheme) {
  return 2 * all_gather_seconds(t, g, whole, scheme);
}

namespace detail {

/// Seconds of messages of `bytes` from every chip to every other along one ring. T = max over h of (h a + bytes * (crossings from h on) /
/// B). Large messages: a + bytes * n(n+2)/(8B) on a ring of even n whose ties go one way; half of the last hop less if ties are split.
/// Small messages: (n/2)(a + bytes/B).
constexpr double exchange_along(const torus& t, const torus_ring& r, double bytes, tie_policy ties) {
  list<double> work(std::size_t(farthest(r)) + 1, 0.0);
  for (int h = 1; h <= farthest(r); ++h) work[std::size_t(h)] = crossings(r, ties, h) * bytes;
  return drained(work, r.stride * t.hop, t.link_bytes * t.all_to_all_efficiency);
}

/// Seconds of messages from every chip to every other of a group, all at once: the time of the busiest link of a ring. A message that
/// crosses it may go any way along the other rings.
constexpr double exchange_at_once(const torus& t, const torus_group& g, double bytes, tie_policy ties) {
  double slowest = 0;
  for (int i = 0; i < g.count; ++i) {
    list<double> work(1, bytes * g[i].stride);
    for (int j = 0; j < g.count; ++j)
      i == j ? spread(work, g[j], 1, [&](int h) { return crossings(g[j], ties, h); }) : spread_to_all(work, g[j]);
    slowest = longer(slowest, drained(work, t.hop, t.link_bytes * t.all_to_all_efficiency));
  }
  return slowest;
}

}  // namespace detail

/// Seconds of an all_to_all without its launch: every device of a group sends `sent` bytes in total, an equal part to each device,
/// including itself.
///
/// Large messages on d times d wrapped chips of one core, whose ties go one way: by dimension 2(a + S(d+2)/(8B)), all orders 2(a +
/// S(d+2)/(16B)), direct a + S(d+2)/(8B). If ties are split, d replaces d+2, and direct reaches the bisection bound S d/(8B). Small
/// messages: a phase takes (d/2)a. The c cores of a chip share its links, so they take c times as long: c S d/(8B).
///
/// The event simulation of the same messages takes as long within 2 % or 2 us, on wrapped and open rings, also of different extents. An
/// exception is the direct scheme in three dimensions, if an open one is as busy as two wrapped ones. Messages that wait for one link then
/// leave others idle. Fair sharing takes 7 % longer on 4x4x2 chips with the 2 open, and 5 % on 8x8x4. The formula is then the bound of the
/// links.
/// @see all_to_all_messages
constexpr double all_to_all_seconds(const torus& t, const torus_group& g, double sent, all_to_all_scheme scheme, tie_policy ties) {
  const double of_chip = sent * g.cores * g.sharers;
  if (scheme == all_to_all_scheme::direct) return detail::exchange_at_once(t, g, of_chip / g.chips(), ties);
  const int parts = scheme == all_to_all_scheme::all_orders ? g.count : 1;
  return detail::in_phases(g, parts, [&](const torus_ring& r, int) {
    return detail::exchange_along(t, r, of_chip / r.extent / parts * r.stride, ties);
  });
}

/// Seconds in which every device of a group sends `bytes` to the next one, at most `hops` hops away. One message of a group is on a link.
constexpr double shift_seconds(const torus& t, const torus_group& g, double bytes, int hops) {
  int stride = g.count > 0 ? 1 : 0;
  for (int i = 0; i < g.count; ++i)
    if (g[i].stride > stride) stride = g[i].stride;
  return hops * t.hop + bytes * stride * g.sharers / t.link_bytes;
}

/// An upper bound in seconds of a permutation among the devices of a group: all chips of a row may send to one column. In that case n/2
/// messages of each core use the last link of a ring of n, and n-1 the last link of an open one.
constexpr double permutation_seconds(const torus& t, const torus_group& g, double bytes) {
  double slowest = 0;
  int hops = 0;
  for (int i = 0; i < g.count; ++i) {
    const torus_ring& r = g[i];
    hops += detail::farthest(r) * r.stride;
    slowest = detail::longer(slowest, bytes * detail::farthest(r) * r.stride * g.cores * g.sharers / t.link_bytes);
  }
  return hops * t.hop + slowest;
}

}}  // namespace gshard::v0
