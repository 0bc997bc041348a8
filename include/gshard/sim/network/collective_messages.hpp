// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The messages of collectives on a torus, for the event simulation.
//
// torus.hpp has the times of these collectives in closed form. All groups of devices that differ in some mesh axes run at once. A chip
// sends and receives once for all of its cores in a group. Its leader is dead or slow if any of its cores is.

#include <gshard/core/base/list.hpp>
#include <gshard/sim/network/message_list.hpp>
#include <gshard/sim/network/torus.hpp>
#include <gshard/sim/network/torus_mesh.hpp>
#include <gshard/sim/record/faults.hpp>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {

/// The chips of a torus as members of rings.
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
  /// The position of a chip in its ring.
  int place(const torus_ring& r, int chip) const { return chip / behind(r) % torus_.extent(r.dim) / r.stride % r.extent; }
  /// The chip at another position of the ring.
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

/// Messages of one phase after the other, with all parts of the data in each. f(list, ring, chips gathered before) adds the messages of a
/// part in a phase.
template <class Phase>
message_list messages_in_phases(const torus_group& g, int parts, Phase f) {
  message_list all;
  for (int phase = 0; phase < g.count; ++phase) {
    message_list list;
    for (int part = 0; part < parts; ++part) {
      int before = 1;
      for (int p = 0; p < phase; ++p) before *= g[(part + p) % g.count].extent;
      f(list, g[(part + phase) % g.count], before);
    }
    all = all.then(list);
  }
  return all;
}

/// A streamed gather: in every step a chip sends one message over each of its links, with the data for that direction that arrived before.
inline message_list streamed_gather(const chip_rings& rings, double whole) {
  const torus_group& g = rings.group;
  struct link {
    int from, to;  // chips
    bool up;
    std::vector<std::size_t> before;  // links into the sender
    list<double> bytes;  // by step
  };
  std::vector<link> links;
  std::vector<std::vector<std::size_t>> coming(std::size_t(rings.chips()));
  for (int chip = 0; chip < rings.chips(); ++chip)
    for (int i = 0; i < g.count; ++i)
      for (const bool up : {true, false}) {
        const torus_ring& r = g[i];
        const int place = rings.place(r, chip), behind = up ? place + 1 : r.extent - place;
        if (!r.wrap && behind == r.extent) continue;
        const int next = rings.at(r, chip, (place + (up ? 1 : r.extent - 1)) % r.extent);
        coming[std::size_t(next)].push_back(links.size());
        links.push_back({chip, next, up, {links.size()}, streamed_steps(g, i, behind, whole)});
      }
  for (link& l : links) l.before.insert(l.before.end(), coming[std::size_t(l.from)].begin(), coming[std::size_t(l.from)].end());

  message_list list;
  std::vector<int> last(links.size(), -1), now, after;
  for (int step = 1; step <= steps_of(g); ++step) {
    now = last;
    for (std::size_t l = 0; l < links.size(); ++l) {
      const double bytes = links[l].bytes[std::size_t(step)];
      if (!(bytes > 0)) continue;
      after.clear();
      for (const std::size_t before : links[l].before)
        if (last[before] >= 0) after.push_back(last[before]);
      now[l] = list.add({.from = rings.leader(links[l].from), .to = rings.leader(links[l].to), .bytes = bytes, .up = links[l].up}, after);
    }
    last = now;
  }
  return list;
}

}  // namespace detail

/// An all_gather of a tensor of `whole` bytes, of which each device has an equal piece. Rings pass pieces on n-1 times; an open ring passes
/// every piece both ways to its ends. In phases, a chip begins a phase when it has sent and received everything of the phase before.
/// Streamed, a chip sends one message over each link in a step, after the messages of the steps before. @see all_gather_seconds
inline message_list all_gather_messages(const torus_mesh& mesh, std::uint32_t axes, double whole, gather_scheme scheme,
                                        const faults& broken = {}) {
  const detail::chip_rings rings(mesh, axes, broken);
  if (scheme == gather_scheme::streamed) return detail::streamed_gather(rings, whole);
  const torus_group& g = rings.group;
  const int parts = scheme == gather_scheme::all_links ? g.count : 1;
  return detail::messages_in_phases(g, parts, [&](message_list& list, const torus_ring& r, int before) {
    const int ways = scheme != gather_scheme::one_way && r.wrap ? 2 : 1;
    const double piece = whole * before / g.chips() / parts / ways * g.sharers;
    const auto chips = std::size_t(rings.chips());
    for (int way = 0; way < (r.wrap ? ways : 2); ++way) {
      const int ahead = way == 0 ? 1 : -1;
      std::vector<int> last(chips, -1), now, after;  // by chip: its message in the step before
      for (int step = 1; step < r.extent; ++step) {
        now.assign(chips, -1);
        for (int chip = 0; chip < rings.chips(); ++chip) {
          const int place = rings.place(r, chip), from_end = way == 0 ? place : r.extent - 1 - place;
          if (!r.wrap && (from_end < step - 1 || from_end == r.extent - 1)) continue;
          const int next = rings.at(r, chip, (place + ahead + r.extent) % r.extent);
          const int previous = rings.at(r, chip, (place - ahead + r.extent) % r.extent);
          after.clear();
          if (step > 1) after = {last[std::size_t(previous)], last[std::size_t(chip)]};
          now[std::size_t(chip)] = list.add({.from = rings.leader(chip), .to = rings.leader(next), .bytes = piece, .up = way == 0}, after);
        }
        last.swap(now);
      }
    }
  });
}

/// A reduce_scatter: every device receives its piece of the sum of tensors of `whole` bytes. A gather backwards.
inline message_list reduce_scatter_messages(const torus_mesh& mesh, std::uint32_t axes, double whole, gather_scheme scheme,
                                            const faults& broken = {}) {
  return all_gather_messages(mesh, axes, whole, scheme, broken).reversed();
}

/// An all_reduce: a reduce_scatter, then a gather.
inline message_list all_reduce_messages(const torus_mesh& mesh, std::uint32_t axes, double whole, gather_scheme scheme,
                                        const faults& broken = {}) {
  return reduce_scatter_messages(mesh, axes, whole, scheme, broken).then(all_gather_messages(mesh, axes, whole, scheme, broken));
}

/// An all_to_all: every device sends `sent` bytes in total, an equal part to each device, including itself. @see all_to_all_seconds
inline message_list all_to_all_messages(const torus_mesh& mesh, std::uint32_t axes, double sent, all_to_all_scheme scheme,
                                        tie_policy ties, const faults& broken = {}) {
  const detail::chip_rings rings(mesh, axes, broken);
  const torus_group& g = rings.group;
  const double of_chip = sent * g.cores * g.sharers;
  // A message is a tie if both ways around a ring on its route are equally long. If ties are split, half of it goes each way.
  const auto send = [&](message_list& list, int from, int to, double bytes, bool tie) {
    const bool split = tie && ties == tie_policy::split;
    message m{.from = rings.leader(from), .to = rings.leader(to), .bytes = split ? bytes / 2 : bytes, .up = true};
    list.add(m);
    if (!split) return;
    m.up = false;
    list.add(m);
  };
  const auto is_tie = [](const torus_ring& r, int steps) { return r.wrap && 2 * (steps < 0 ? -steps : steps) == r.extent; };
  if (scheme != all_to_all_scheme::direct) {
    const int parts = scheme == all_to_all_scheme::all_orders ? g.count : 1;
    return detail::messages_in_phases(g, parts, [&](message_list& list, const torus_ring& r, int) {
      for (int chip = 0; chip < rings.chips(); ++chip)
        for (int p = 0, place = rings.place(r, chip); p < r.extent; ++p)
          if (p != place) send(list, chip, rings.at(r, chip, p), of_chip / r.extent / parts, is_tie(r, p - place));
    });
  }
  message_list list;
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
      send(list, chip, to, of_chip / g.chips(), tie);
    }
  return list;
}

}}  // namespace gshard::v0
