// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The load of each link of a torus under given traffic between devices, and lower bounds of its time.

#include <gshard/exec/process/error.hpp>
#include <gshard/sim/network/torus.hpp>
#include <gshard/sim/network/torus_links.hpp>
#include <gshard/sim/network/torus_mesh.hpp>
#include <gshard/sim/record/faults.hpp>
#include <gshard/sim/record/run_record.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {

/// Throws the error of dead links that leave no route from one chip to another.
[[noreturn]] inline void fail_cut_off(const torus_mesh& mesh, const torus_links& links, int source, int goal) {
  std::vector<int> at_source, at_goal;
  for (int d = 0; d < mesh.topology().devices(); ++d)
    if (const int chip = mesh.chip(d); chip == source || chip == goal) (chip == source ? at_source : at_goal).push_back(d);
  throw error("link loads: dead links such as " + links.dead_link_text() + " cut off the devices " + devices_text(at_goal) +
              " from the devices " + devices_text(at_source));
}

}  // namespace detail

/// The load of each link of a torus under any traffic between its devices: for all pairs at once, one device sends bytes(from, to) to
/// another. A message goes along dimension 0 first, then along the next, the shortest way around each ring. If both ways are equally short,
/// the tie policy of the torus decides. Cores of a chip use the links of the chip, and none among themselves. If a link on the route along
/// a dimension is dead, that part of the route takes the fewest live links. Slow links are not avoided. Loads are physical: they include
/// neither launches nor torus::all_to_all_efficiency.
///
/// Time: the calls of `bytes`, and some additions for each pair of chips. That is 0.04 s for 4096 devices of 2048 chips, 0.1 s for 4096
/// chips. Throws `gshard::error` if dead links cut off a device that others send to, or if a fault names a link that does not exist.
class link_loads {
 public:
  template <class Traffic>
    requires std::convertible_to<std::invoke_result_t<Traffic&, int, int>, double>
  link_loads(const torus_mesh& placed, Traffic bytes, const faults& broken = {})
      : links_(placed.topology(), broken), bytes_(std::size_t(links_.count()), 0.0) {
    const torus& t = links_.topology();
    const int devices = t.devices(), chips = t.chips();
    std::vector<int> chip(std::size_t(devices), 0);
    std::vector<std::vector<int>> on(std::size_t(chips), std::vector<int>{});
    for (int d = 0; d < devices; ++d) {
      chip[std::size_t(d)] = placed.chip(d);
      on[std::size_t(placed.chip(d))].push_back(d);
    }
    sent_.assign(std::size_t(chips), 0.0);
    received_.assign(std::size_t(chips), 0.0);
    for (int d = 0; d < t.dims; ++d) along_[std::size_t(d)].assign(std::size_t(chips * t.extent(d)), 0.0);

    std::vector<double> row(std::size_t(chips), 0.0);
    for (int from = 0; from < chips; ++from) {
      std::ranges::fill(row, 0.0);
      for (const int source : on[std::size_t(from)])
        for (int to = 0; to < devices; ++to) row[std::size_t(chip[std::size_t(to)])] += double(bytes(source, to));
      add_row(from, row);
    }
    for (int d = 0; d < t.dims; ++d)
      for (int line = 0; line < chips / t.extent(d); ++line) add_line(d, line, placed);
  }

  /// Seconds until all messages have arrived if every link is always busy: the time of the busiest link, after one hop. At least the hops
  /// of the longest route.
  double seconds() const {
    double most = 0;
    for (int l = 0; l < links_.count(); ++l) most = std::max(most, busy(l));
    return most > 0 ? std::max(most + links_.topology().hop, farthest_ * links_.topology().hop) : 0;
  }
  /// Seconds in which the busiest link is busy.
  double busiest() const {
    double most = 0;
    for (int l = 0; l < links_.count(); ++l) most = std::max(most, busy(l));
    return most;
  }

  /// A lower bound for any routing: the bytes of the chip that sends or receives most, over all of its links.
  double injection_bound() const {
    double most = 0;
    for (int chip = 0; chip < links_.topology().chips(); ++chip)
      if (const double ports = links_.ports(chip); ports > 0)
        most = std::max(most, std::max(sent_[std::size_t(chip)], received_[std::size_t(chip)]) / ports);
    return most / links_.topology().link_bytes;
  }
  /// A lower bound for any routing: the bytes between two halves of the chips, over all links between them. It is the largest over halves
  /// of every dimension, and over all ends of an open one.
  double bisection_bound() const {
    const torus& t = links_.topology();
    double most = 0;
    for (int d = 0; d < t.dims; ++d) {
      const int n = t.extent(d), lines = t.chips() / n;
      const bool ring = t.wrap[std::size_t(d)];
      std::vector<double> total(std::size_t(n * n), 0.0);
      for (std::size_t i = 0; i < along_[std::size_t(d)].size(); ++i) total[i % total.size()] += along_[std::size_t(d)][i];
      for (int first = ring ? 0 : 1; first < n; ++first) {
        // Within: [first, first + n/2) of a ring, [0, first) of an open dimension.
        const auto within = [&](int c) { return ring ? (c - first + n) % n < n / 2 : c < first; };
        double out = 0, in = 0;
        for (int from = 0; from < n; ++from)
          for (int to = 0; to < n; ++to)
            if (within(from) != within(to)) (within(from) ? out : in) += total[std::size_t(from * n + to)];
        most = std::max(most, std::max(out, in) / ((ring ? 2 : 1) * lines * t.link_bytes));
      }
    }
    return most;
  }

  /// All links that are not dead, including those without load.
  std::vector<link_load> loads() const {
    std::vector<link_load> list;
    for (int l = 0; l < links_.count(); ++l)
      if (links_.live(l)) list.push_back({links_.from(l), links_.to(l), bytes_[std::size_t(l)], busy(l)});
    return list;
  }

 private:
  torus_links links_;
  std::vector<double> bytes_;                                      // by link
  std::array<std::vector<double>, torus::max_dims> along_;         // by dimension: line, from, to
  std::vector<double> sent_, received_;                            // by chip
  int farthest_ = 0;

  double busy(int link) const {
    const double rate = links_.rate(link), bytes = bytes_[std::size_t(link)];
    return bytes > 0 ? bytes / rate : 0;
  }

  /// Adds the messages of one chip: along every dimension, the bytes between the ends of that part of their routes. Sums over the last
  /// coordinates, because routes change these last.
  void add_row(int from, std::vector<double>& row) {
    const torus& t = links_.topology();
    for (int to = 0; to < t.chips(); ++to) {
      if (to == from || !(row[std::size_t(to)] > 0)) continue;
      sent_[std::size_t(from)] += row[std::size_t(to)];
      received_[std::size_t(to)] += row[std::size_t(to)];
    }
    int diameter = 0;
    for (int d = 0; d < t.dims; ++d) diameter += t.wrap[std::size_t(d)] ? t.extent(d) / 2 : t.extent(d) - 1;
    for (int to = 0; to < t.chips() && farthest_ < diameter; ++to)
      if (row[std::size_t(to)] > 0) farthest_ = std::max(farthest_, links_.hops(from, to));
    std::size_t size = row.size();
    int after = 1;  // chips of the dimensions already summed
    for (int d = t.dims; d-- > 0;) {
      const auto n = std::size_t(t.extent(d)), lines = size / n;
      const auto here = std::size_t(from / after % t.extent(d)), behind = std::size_t(from % after);
      for (std::size_t before = 0; before < lines; ++before) {
        double* const to = along_[std::size_t(d)].data() + ((before * std::size_t(after) + behind) * n + here) * n;
        double sum = 0;
        for (std::size_t c = 0; c < n; ++c) {
          to[c] += row[before * n + c];
          sum += row[before * n + c];
        }
        row[before] = sum;
      }
      size = lines;
      after *= t.extent(d);
    }
  }

  /// Adds the messages along one line of a dimension to its links. Each message uses consecutive links, so differences suffice.
  void add_line(int d, int line, const torus_mesh& mesh) {
    const torus& t = links_.topology();
    const int n = t.extent(d), first = links_.first_of_line(d, line);
    const double* const bytes = along_[std::size_t(d)].data() + std::size_t(line) * std::size_t(n * n);
    const bool whole = links_.line_lives(d, first);
    std::vector<double> up(std::size_t(2 * n + 1), 0.0), down(std::size_t(2 * n + 1), 0.0);  // two rounds of the ring
    const auto send = [&](int from, int to, double b, bool upwards) {
      const int steps = upwards ? (to - from + n) % n : (from - to + n) % n;
      if (!whole && !links_.live_way(d, first, from, steps, upwards)) {
        const int source = links_.chip(d, first, from), goal = links_.chip(d, first, to);
        const std::vector<int> way = links_.way_around(source, goal);
        if (way.empty()) detail::fail_cut_off(mesh, links_, source, goal);
        for (const int l : way) bytes_[std::size_t(l)] += b;
        return;
      }
      const int begin = upwards ? from : from + n - steps + 1;  // the first of the consecutive chips whose links carry it
      (upwards ? up : down)[std::size_t(begin)] += b;
      (upwards ? up : down)[std::size_t(begin + steps)] -= b;
    };
    for (int from = 0; from < n; ++from)
      for (int to = 0; to < n; ++to) {
        const double b = bytes[from * n + to];
        if (from == to || !(b > 0)) continue;
        const int ahead = (to - from + n) % n;
        if (!t.wrap[std::size_t(d)]) {
          send(from, to, b, to > from);
        } else if (2 * ahead == n && t.ties == tie_policy::split) {
          send(from, to, b / 2, true);
          send(from, to, b / 2, false);
        } else {
          send(from, to, b, 2 * ahead <= n);
        }
      }
    double carried_up = 0, carried_down = 0;
    for (int i = 0; i < 2 * n; ++i) {
      carried_up += up[std::size_t(i)];
      carried_down += down[std::size_t(i)];
      const int chip = links_.chip(d, first, i % n);
      // Rounding leaves small differences where nothing is carried.
      if (const int l = links_.link(d, true, chip); links_.exists(l)) bytes_[std::size_t(l)] += std::max(carried_up, 0.0);
      if (const int l = links_.link(d, false, chip); links_.exists(l)) bytes_[std::size_t(l)] += std::max(carried_down, 0.0);
    }
  }
};

}}  // namespace gshard::v0
