// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/simulator/faults.hpp>
#include <gshard/comm/simulator/message_list.hpp>
#include <gshard/pass/torus.hpp>
#include <gshard/pass/torus_mesh.hpp>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

// The messages of the collectives whose prices pass/torus.hpp gives in closed form, among the devices that differ in some axes of a mesh,
// all groups at once. A chip sends and receives once for all of its cores that take part: the one that leads it is dead or slow if any is.
namespace gshard { inline namespace v0 {

namespace detail {

/// The chips of a torus as a collective sees them.
class chip_rings {
 public:
  chip_rings(const torus_mesh& mesh, std::uint32_t axes, const faults& broken) : group(mesh.group(axes)), torus_(mesh.topology()) {
    leaders_.assign(std::size_t(torus_.chips()), -1);
    const auto badness = [&](int d) { return std::tuple(broken.dead(d), broken.slowness(d, 0), broken.delay(d)); };
    for (int device = 0; device < torus_.devices(); ++device) {
      int& leader = leaders_[std::size_t(mesh.chip(device))];
      if (leader < 0 || (broken.tells_devices_apart() && badness(device) > badness(leader))) leader = device;
    }
  }
  const torus_group group;

  int chips() const { return torus_.chips(); }
  int leader(int chip) const { return leaders_[std::size_t(chip)]; }
  /// The place of a chip in its ring.
  int place(const torus_ring& r, int chip) const { return chip / behind(r) % torus_.extent(r.dim) / r.stride % r.extent; }
  /// The chip of that ring at another place.
  int at(const torus_ring& r, int chip, int place_there) const {
    return chip + (place_there - place(r, chip)) * r.stride * behind(r);
  }

 private:
  torus torus_;
  std::vector<int> leaders_;

  int behind(const torus_ring& r) const {
    int n = 1;
    for (int d = r.dim + 1; d < torus_.dims; ++d) n *= torus_.extent(d);
    return n;
  }
};

/// One phase after the other: each chip begins one when it has all that it receives in the phase before. Every part of the data is by
/// itself. f(list, ring, chips gathered before, gate) adds a phase, whose first messages wait for gate[chip], and returns what arrives at
/// each chip.
template <class Phase>
message_list messages_in_phases(const chip_rings& rings, int parts, Phase f) {
  message_list list;
  const torus_group& g = rings.group;
  for (int part = 0; part < parts; ++part) {
    std::vector<int> gate;
    int before = 1;
    for (int phase = 0; phase < g.count; ++phase) {
      const torus_ring& r = g[(part + phase) % g.count];
      const std::vector<std::vector<int>> arriving = f(list, r, before, gate);
      before *= r.extent;
      gate.assign(std::size_t(rings.chips()), -1);
      for (int chip = 0; chip < rings.chips(); ++chip)
        gate[std::size_t(chip)] = list.add({.from = rings.leader(chip), .to = rings.leader(chip)}, arriving[std::size_t(chip)]);
    }
  }
  return list;
}

inline std::vector<int> only(const std::vector<int>& gate, int chip) {
  return gate.empty() ? std::vector<int>{} : std::vector<int>{gate[std::size_t(chip)]};
}

/// A streamed gather, in halves of pieces, of which one goes up where both ways round a ring are as long, one down.
class streamed_gather {
 public:
  streamed_gather(const chip_rings& rings, double whole) : rings_(rings) {
    const torus_group& g = rings.group;
    bytes_ = whole / g.chips() / g.count / 2 * g.sharers;
    for (part_ = 0; part_ < g.count; ++part_)
      for (int chip = 0; chip < rings.chips(); ++chip)
        for (const bool up : {true, false}) pass_on(chip, up, 0, {});
  }
  message_list list;

 private:
  const chip_rings& rings_;
  double bytes_ = 0;
  int part_ = 0;

  /// From a chip to which a half has come, along this and the later rings.
  void pass_on(int chip, bool goes_up, int phase, const std::vector<int>& came) {
    for (; phase < rings_.group.count; ++phase) {
      const torus_ring& r = rings_.group[(part_ + phase) % rings_.group.count];
      const int place = rings_.place(r, chip);
      for (const bool up : {true, false}) {
        const int steps = r.wrap ? r.extent / 2 : up ? r.extent - 1 - place : place;
        int at = chip;
        std::vector<int> after = came;
        for (int step = 1; step <= steps; ++step) {
          if (r.wrap && 2 * step == r.extent && goes_up != up) break;
          const int next = rings_.at(r, chip, (place + (up ? step : r.extent - step)) % r.extent);
          after = {list.add({.from = rings_.leader(at), .to = rings_.leader(next), .bytes = bytes_, .up = up}, after)};
          at = next;
          pass_on(next, goes_up, phase + 1, after);
        }
      }
    }
  }
};

}  // namespace detail

/// Every device gets a whole tensor of so many bytes, of which each has an equal piece: rings pass pieces on, n-1 times; an open ring
/// passes every piece both ways to its ends. Streamed, a chip passes on what has come whole; in an open mesh, where messages come in no
/// good order, longer than its price. @see all_gather_seconds
inline message_list all_gather_messages(const torus_mesh& mesh, std::uint32_t axes, double whole, gather_scheme scheme,
                                        const faults& broken = {}) {
  const detail::chip_rings rings(mesh, axes, broken);
  if (scheme == gather_scheme::streamed) return detail::streamed_gather(rings, whole).list;
  const torus_group& g = rings.group;
  const int parts = scheme == gather_scheme::all_links ? g.count : 1;
  return detail::messages_in_phases(rings, parts, [&](message_list& list, const torus_ring& r, int before, const std::vector<int>& gate) {
    const int ways = scheme != gather_scheme::one_way && r.wrap ? 2 : 1;
    const double piece = whole * before / g.chips() / parts / ways * g.sharers;
    const auto chips = std::size_t(rings.chips());
    std::vector<std::vector<int>> arriving(chips);
    for (int way = 0; way < (r.wrap ? ways : 2); ++way) {
      const int ahead = way == 0 ? 1 : -1;
      std::vector<int> last(chips, -1), now;  // what each chip sent before
      for (int step = 1; step < r.extent; ++step) {
        now.assign(chips, -1);
        for (int chip = 0; chip < rings.chips(); ++chip) {
          const int place = rings.place(r, chip), from_end = way == 0 ? place : r.extent - 1 - place;
          if (!r.wrap && (from_end < step - 1 || from_end == r.extent - 1)) continue;
          const int next = rings.at(r, chip, (place + ahead + r.extent) % r.extent);
          const int previous = rings.at(r, chip, (place - ahead + r.extent) % r.extent);
          const message m{.from = rings.leader(chip), .to = rings.leader(next), .bytes = piece, .up = way == 0};
          std::vector<int> after = step == 1 ? detail::only(gate, chip) : std::vector<int>{last[std::size_t(previous)]};
          if (step > 1) after.push_back(last[std::size_t(chip)]);
          now[std::size_t(chip)] = list.add(m, after);
          arriving[std::size_t(next)].push_back(now[std::size_t(chip)]);
        }
        last.swap(now);
      }
    }
    return arriving;
  });
}

/// Every device gets its piece of the sum of tensors of so many bytes, one of each: a gather backwards.
inline message_list reduce_scatter_messages(const torus_mesh& mesh, std::uint32_t axes, double whole, gather_scheme scheme,
                                            const faults& broken = {}) {
  return all_gather_messages(mesh, axes, whole, scheme, broken).reversed();
}

/// Every device gets the whole sum: a reduce-scatter, then a gather.
inline message_list all_reduce_messages(const torus_mesh& mesh, std::uint32_t axes, double whole, gather_scheme scheme,
                                        const faults& broken = {}) {
  return reduce_scatter_messages(mesh, axes, whole, scheme, broken).then(all_gather_messages(mesh, axes, whole, scheme, broken));
}

/// Every device sends so many bytes in all, an equal part to each, itself counted. @see all_to_all_seconds
inline message_list all_to_all_messages(const torus_mesh& mesh, std::uint32_t axes, double sent, all_to_all_scheme scheme,
                                        tie_policy ties, const faults& broken = {}) {
  const detail::chip_rings rings(mesh, axes, broken);
  const torus_group& g = rings.group;
  const double of_chip = sent * g.cores * g.sharers;
  // As far both ways along a ring of the way: half of it each way, if ties are split.
  const auto send = [&](message_list& list, int from, int to, double bytes, bool tie, const std::vector<int>& after,
                        std::vector<int>& sent_now) {
    const bool split = tie && ties == tie_policy::split;
    message m{.from = rings.leader(from), .to = rings.leader(to), .bytes = split ? bytes / 2 : bytes, .up = true};
    sent_now.push_back(list.add(m, after));
    if (!split) return;
    m.up = false;
    sent_now.push_back(list.add(m, after));
  };
  const auto is_tie = [](const torus_ring& r, int steps) { return r.wrap && 2 * (steps < 0 ? -steps : steps) == r.extent; };
  if (scheme != all_to_all_scheme::direct) {
    const int parts = scheme == all_to_all_scheme::all_orders ? g.count : 1;
    return detail::messages_in_phases(rings, parts, [&](message_list& list, const torus_ring& r, int, const std::vector<int>& gate) {
      std::vector<std::vector<int>> arriving(std::size_t(rings.chips()));
      for (int chip = 0; chip < rings.chips(); ++chip) {
        const std::vector<int> after = detail::only(gate, chip);
        const int place = rings.place(r, chip);
        for (int p = 0; p < r.extent; ++p) {
          const int to = rings.at(r, chip, p);
          if (p != place) send(list, chip, to, of_chip / r.extent / parts, is_tie(r, p - place), after, arriving[std::size_t(to)]);
        }
      }
      return arriving;
    });
  }
  message_list list;
  std::vector<int> all;
  for (int chip = 0; chip < rings.chips(); ++chip)
    for (int number = 1; number < g.chips(); ++number) {  // offsets along all rings
      int to = chip, rest = number;
      bool tie = false;
      for (int i = 0; i < g.count; ++i) {
        const int steps = rest % g[i].extent, place = rings.place(g[i], to);
        rest /= g[i].extent;
        to = rings.at(g[i], to, (place + steps) % g[i].extent);
        tie = tie || is_tie(g[i], steps);
      }
      send(list, chip, to, of_chip / g.chips(), tie, {}, all);
    }
  return list;
}

}}  // namespace gshard::v0
