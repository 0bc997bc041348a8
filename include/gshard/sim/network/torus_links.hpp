// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The links of a torus: their numbers, routes over them, and their rates with slow and dead links.

#include <gshard/exec/process/error.hpp>
#include <gshard/sim/network/torus.hpp>
#include <gshard/sim/record/faults.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 {

/// The links of a torus by number, one for each direction between neighbors, with their faults. Chips are numbered row-major. Up is the
/// direction to the next coordinate of a dimension. A ring of two chips has two links in each direction.
class torus_links {
 public:
  /// Throws `gshard::error` if a fault names chips without a link between them, or a factor above 1.
  explicit torus_links(const torus& t, const faults& broken = {}) : t_(t), rates_(std::size_t(t.dims * 2 * t.chips()), 0.0) {
    for (int l = 0; l < count(); ++l)
      if (exists(l)) rates_[std::size_t(l)] = t.link_bytes * broken.link_factor(from(l), to(l));
    for (const link_fault& f : broken.links) {
      const std::string text = "faults: link " + link_text(f.from, f.to);
      bool found = false;
      for (int l = 0; l < count() && !found; ++l) found = exists(l) && from(l) == f.from && to(l) == f.to;
      if (!found) throw error(text + " is not a link of the torus");
      if (f.factor > 1) throw error(text + " cannot be faster than it is");
      if (f.dead() && dead_.empty()) dead_ = link_text(f.from, f.to);
    }
  }

  const torus& topology() const { return t_; }
  /// Numbers of links are below this. Some numbers have no link, at the ends of open dimensions.
  int count() const { return t_.dims * 2 * t_.chips(); }
  int link(int d, bool up, int chip) const { return (d * 2 + (up ? 0 : 1)) * t_.chips() + chip; }
  bool exists(int l) const {
    const int d = dim(l), n = t_.extent(d), c = coordinate(from(l), d);
    return n > 1 && (t_.wrap[std::size_t(d)] || (up(l) ? c + 1 < n : c > 0));
  }
  /// Bytes per second; 0 if the link is dead or does not exist.
  double rate(int l) const { return rates_[std::size_t(l)]; }
  bool live(int l) const { return rate(l) > 0; }
  int from(int l) const { return l % t_.chips(); }
  int to(int l) const {
    const int d = dim(l), n = t_.extent(d), c = coordinate(from(l), d);
    return from(l) + ((c + (up(l) ? 1 : n - 1)) % n - c) * behind(d);
  }

  int coordinate(int chip, int d) const { return chip / behind(d) % t_.extent(d); }
  int hops(int from, int to) const {
    int n = 0;
    for (int d = 0; d < t_.dims; ++d) n += t_.hops(d, coordinate(from, d), coordinate(to, d));
    return n;
  }
  /// The links that leave a chip, dead or not.
  int ports(int chip) const {
    int n = 0;
    for (int d = 0; d < t_.dims; ++d) n += exists(link(d, true, chip)) + exists(link(d, false, chip));
    return n;
  }
  /// The chip at coordinate 0 of a line along a dimension. Lines are numbered row-major.
  int first_of_line(int d, int line) const { return line / behind(d) * t_.extent(d) * behind(d) + line % behind(d); }
  int chip(int d, int first, int c) const { return first + c * behind(d); }

  bool line_lives(int d, int first) const {
    for (int c = 0; c < t_.extent(d); ++c)
      for (const bool up : {true, false})
        if (const int l = link(d, up, chip(d, first, c)); exists(l) && !live(l)) return false;
    return true;
  }
  /// True if all links of a route along a line are live.
  bool live_way(int d, int first, int c, int steps, bool up) const {
    const int n = t_.extent(d);
    for (; steps > 0; --steps, c = (c + (up ? 1 : n - 1)) % n)
      if (!live(link(d, up, chip(d, first, c)))) return false;
    return true;
  }
  /// The route with the fewest live links from one chip to another; empty if there is none.
  std::vector<int> way_around(int source, int goal) const {
    std::vector<int> by(std::size_t(t_.chips()), -1), reached{source};  // the link by which a chip is reached
    for (std::size_t i = 0; i < reached.size() && by[std::size_t(goal)] < 0; ++i)
      for (int d = 0; d < t_.dims; ++d)
        for (const bool up : {true, false}) {
          const int l = link(d, up, reached[i]);
          if (!live(l) || to(l) == source || by[std::size_t(to(l))] >= 0) continue;
          by[std::size_t(to(l))] = l;
          reached.push_back(to(l));
        }
    std::vector<int> way;
    for (int at = goal; at != source && by[std::size_t(at)] >= 0; at = from(by[std::size_t(at)])) way.push_back(by[std::size_t(at)]);
    std::ranges::reverse(way);
    return way;
  }
  /// The route of a message: along dimension 0 first, the shortest way around each ring. `up`: the direction if both ways are equally
  /// short. If a link on it is dead, that part of the route takes the fewest live links. Throws `gshard::error` if there is no route.
  std::vector<int> way(int source, int goal, bool up = true) const {
    std::vector<int> links;
    for (int at = source, d = 0; d < t_.dims; ++d) {
      const int n = t_.extent(d), c = coordinate(at, d), goes_to = coordinate(goal, d), ahead = (goes_to - c + n) % n;
      if (ahead == 0) continue;
      const bool upwards = !t_.wrap[std::size_t(d)] ? goes_to > c : 2 * ahead < n || (2 * ahead == n && up);
      const int end = at + (goes_to - c) * behind(d), first = at - c * behind(d), steps = upwards ? ahead : n - ahead;
      if (live_way(d, first, c, steps, upwards)) {
        for (int i = 0; i < steps; ++i) links.push_back(link(d, upwards, chip(d, first, (c + (upwards ? i : n - i)) % n)));
      } else {
        const std::vector<int> around = way_around(at, end);
        if (around.empty())
          throw error("dead links such as " + dead_link_text() + " cut off chip " + std::to_string(end) + " from chip " +
                      std::to_string(at));
        links.insert(links.end(), around.begin(), around.end());
      }
      at = end;
    }
    return links;
  }
  /// One of the dead links, for error messages.
  const std::string& dead_link_text() const { return dead_; }

 private:
  torus t_;
  std::vector<double> rates_;
  std::string dead_;

  int dim(int l) const { return l / (2 * t_.chips()); }
  bool up(int l) const { return l / t_.chips() % 2 == 0; }
  /// The difference of the numbers of two neighbors along a dimension.
  int behind(int d) const {
    int n = 1;
    while (++d < t_.dims) n *= t_.extent(d);
    return n;
  }
  static std::string link_text(int from, int to) { return "from chip " + std::to_string(from) + " to chip " + std::to_string(to); }
};

}}  // namespace gshard::v0
