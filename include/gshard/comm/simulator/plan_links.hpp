// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/simulator/faults.hpp>
#include <gshard/comm/simulator/link_loads.hpp>
#include <gshard/comm/simulator/run_record.hpp>
#include <gshard/comm/simulator/torus_links.hpp>
#include <gshard/pass/cost.hpp>
#include <gshard/pass/network.hpp>
#include <gshard/pass/plan.hpp>
#include <gshard/pass/torus_mesh.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {

/// An all-to-all among the devices that differ in some axes of a mesh, in which each receives one byte in all.
class even_exchange {
 public:
  even_exchange(const torus_mesh& mesh, std::uint32_t axes) : group_(std::size_t(mesh.topology().devices()), 0) {
    int members = 1;
    for (int a = 0; a < mesh.rank(); ++a)
      if ((axes >> a) & 1u) members *= mesh.extent(a);
    if (members > 1) each_ = 1.0 / (members - 1);
    for (int device = 0; device < int(group_.size()); ++device) {
      int rest = device, id = 0;
      for (int a = mesh.rank(); a-- > 0; rest /= mesh.extent(a))
        if (!((axes >> a) & 1u)) id = id * mesh.extent(a) + rest % mesh.extent(a);
      group_[std::size_t(device)] = id;
    }
  }
  double operator()(int from, int to) const { return from != to && group_[std::size_t(from)] == group_[std::size_t(to)] ? each_ : 0; }

 private:
  std::vector<int> group_;  // by device
  double each_ = 0;
};

}  // namespace detail

/// What the links of a torus carry in the collectives of a plan, and how slow links slow these down. An all-to-all puts on every link what
/// its messages need on their ways (link_loads); all other collectives use the links of the dimensions that they go along evenly.
class plan_links {
 public:
  explicit plan_links(const torus_mesh& mesh, const faults& broken = {}) : mesh_(mesh), broken_(broken), links_(mesh.topology(), broken) {}

  /// How many times as long a collective takes because of the faults of links. In an all-to-all the loads of all links tell; round a ring
  /// everything waits for the slowest link, or goes the other way round, which takes twice as long; round a dead link of an open line
  /// three others lead.
  double slowdown(op kind, std::uint32_t axes) {
    if (broken_.links.empty()) return 1;
    if (kind == op::all_to_all) {
      const auto [at, is_new] = slowdowns_.try_emplace(axes, 1.0);
      if (is_new) at->second = link_loads(mesh_, detail::even_exchange(mesh_, axes), broken_).busiest() /
                              link_loads(mesh_, detail::even_exchange(mesh_, axes)).busiest();
      return at->second;
    }
    double worst = 1;
    const torus_group g = mesh_.group(axes);
    for (const link_fault& f : broken_.links)
      for (int i = 0; i < g.count; ++i)
        if (is_along(f, g[i].dim)) {
          const double round = g[i].wrap ? 2 : 3;
          worst = std::max(worst, f.dead() ? round : g[i].wrap ? std::min(1 / f.factor, round) : 1 / f.factor);
        }
    return worst;
  }

  /// Of all steps of a run together.
  std::vector<link_load> loads(const plan_view& plan, const std::vector<step_record>& steps) {
    std::map<std::pair<bool, std::uint32_t>, double> bytes;  // received by a device: of all-to-alls and others, by axes
    for (const step_record& s : steps)
      if (const node& n = plan.steps[std::size_t(s.step)]; s.bytes_received > 0)
        bytes[{n.kind == op::all_to_all, std::uint32_t(n.attr.integer[0])}] += double(s.bytes_received);
    std::vector<link_load> all = link_loads(mesh_, [](int, int) { return 0.0; }, broken_).loads();
    for (const auto& [what, received] : bytes) {
      if (what.first) {
        const std::vector<link_load> more = link_loads(mesh_, detail::even_exchange(mesh_, what.second), broken_).loads();
        for (std::size_t l = 0; l < all.size(); ++l) all[l].bytes += received * more[l].bytes;
      } else {
        const torus_group g = mesh_.group(what.second);
        for (int i = 0; i < g.count; ++i)
          for (link_load& l : all)
            if (is_along({l.from, l.to, 1}, g[i].dim)) l.bytes += received * g.sharers * g[i].stride / (2 * g.count);
      }
    }
    for (link_load& l : all) l.seconds = l.bytes / (mesh_.topology().link_bytes * broken_.link_factor(l.from, l.to));
    return all;
  }

 private:
  torus_mesh mesh_;
  faults broken_;
  torus_links links_;
  std::map<std::uint32_t, double> slowdowns_;  // of all-to-alls, by axes

  bool is_along(const link_fault& l, int dim) const {
    for (int d = 0; d < mesh_.topology().dims; ++d)
      if ((links_.coordinate(l.from, d) != links_.coordinate(l.to, d)) != (d == dim)) return false;
    return true;
  }
};

/// A torus whose links have faults, as a network.
class faulty_torus {
 public:
  faulty_torus(const torus_mesh& mesh, const faults& broken) : mesh_(mesh), links_(mesh, broken) {}

  double seconds(op kind, std::uint32_t axes, const extents& e, std::int64_t bytes_received) const {
    return mesh_.seconds(kind, axes, e, bytes_received) * links_.slowdown(kind, axes);
  }

 private:
  torus_mesh mesh_;
  mutable plan_links links_;  // remembers what it has found
};
static_assert(network<faulty_torus>);

}}  // namespace gshard::v0
