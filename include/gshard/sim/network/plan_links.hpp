// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The loads of torus links in the collectives of a plan, and the slowdown by slow and dead links.

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/cost/network.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/core/reshard/cost.hpp>
#include <gshard/sim/network/link_loads.hpp>
#include <gshard/sim/network/torus_links.hpp>
#include <gshard/sim/network/torus_mesh.hpp>
#include <gshard/sim/record/faults.hpp>
#include <gshard/sim/record/run_record.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {

/// A device in a group of devices that differ in some mesh axes: the first device of the group, and the next one, cyclically.
struct group_place {
  int first = 0, next = 0;

  group_place(const torus_mesh& mesh, std::uint32_t axes, int device) : first(device), next(device) {
    bool carry = true;
    for (int a = mesh.rank(), rest = device, step = 1; a-- > 0;) {
      const int n = mesh.extent(a), place = rest % n;
      if ((axes >> a) & 1u) {
        const int after = (place + carry) % n;
        first -= place * step;
        next += (after - place) * step;
        carry = carry && after == 0;
      }
      step *= n;
      rest /= n;
    }
  }
};

/// An all_to_all among the devices that differ in some mesh axes. Each receives one byte in total.
class even_exchange {
 public:
  even_exchange(const torus_mesh& mesh, std::uint32_t axes) {
    int members = 1;
    for (int a = 0; a < mesh.rank(); ++a)
      if ((axes >> a) & 1u) members *= mesh.extent(a);
    if (members > 1) each_ = 1.0 / (members - 1);
    for (int device = 0; device < mesh.topology().devices(); ++device) group_.push_back(group_place(mesh, axes, device).first);
  }
  double operator()(int from, int to) const { return from != to && group_[std::size_t(from)] == group_[std::size_t(to)] ? each_ : 0; }

 private:
  std::vector<int> group_;  // by device: the first of its group
  double each_ = 0;
};

/// Every device sends one byte to the next one along some mesh axes.
class shift {
 public:
  shift(const torus_mesh& mesh, std::uint32_t axes) {
    for (int device = 0; device < mesh.topology().devices(); ++device) next_.push_back(group_place(mesh, axes, device).next);
  }
  double operator()(int from, int to) const { return from != to && next_[std::size_t(from)] == to ? 1 : 0; }

 private:
  std::vector<int> next_;  // by device
};

}  // namespace detail

/// The loads of torus links in the collectives of a plan, and the slowdown by slow and dead links. All-to-alls, permutes and looped einsums
/// load the links on the routes of their messages (link_loads). A permute, and a looped einsum in all its steps, sends the received bytes
/// to the next device. Gathers and reductions count as streamed, for any scheme. A link of a wrapped ring carries the pieces of all chips
/// that are nearer in its direction. A link of an open ring carries the pieces of all chips behind it. The load of a dead link goes over
/// the fewest live links. Without faults the busiest link carries the bytes of all_gather_seconds.
class plan_links {
 public:
  /// Throws `gshard::error` if dead links cut off devices from others, or if a fault names a link that does not exist.
  explicit plan_links(const torus_mesh& mesh, const faults& broken = {}) : mesh_(mesh), broken_(broken), links_(mesh.topology(), broken) {
    for (int l = 0; l < links_.count(); ++l)
      if (is_dead(l) && links_.way_around(links_.from(l), links_.to(l)).empty())
        detail::fail_cut_off(mesh, links_, links_.from(l), links_.to(l));
  }

  /// The factor by which link faults slow down a collective. For all-to-alls and shifts it is the factor of the busiest link. Gathers and
  /// reductions wait for the slowest link, or go the other way around a ring. The other way takes twice as long, as on an open line. Around
  /// any other dead link, a route takes three links.
  double slowdown(op_ref kind, std::uint32_t axes) {
    if (broken_.links.empty()) return 1;
    if (!traits(kind).in_rings) {
      const auto [at, is_new] = slowdowns_.try_emplace({is_shift(kind), axes}, 1.0);
      if (!is_new) return at->second;
      if (const double whole = traffic(kind, axes, {}).busiest(); whole > 0) at->second = traffic(kind, axes, broken_).busiest() / whole;
      return at->second;
    }
    double worst = 1;
    const torus_group g = mesh_.group(axes);
    for (const link_fault& f : broken_.links)
      for (int i = 0; i < g.count; ++i)
        if (is_along(f.from, f.to, g[i].dim)) {
          const double round = g[i].wrap && stays_joined(g[i].dim, f.from) ? 2 : 3;
          worst = std::max(worst, f.dead() ? round : g[i].wrap ? std::min(1 / f.factor, round) : 1 / f.factor);
        }
    return worst;
  }

  /// The loads of all steps of a run together.
  std::vector<link_load> loads(const plan_view& plan, const std::vector<step_record>& steps) {
    std::map<std::pair<op_ref, std::uint32_t>, double> received;  // bytes that a device receives
    for (const step_record& s : steps)
      if (const node& n = plan.steps[std::size_t(s.step)]; s.bytes_received > 0)
        received[{n.kind, n.attr.axes}] += double(s.bytes_received);
    std::vector<double> bytes(std::size_t(links_.count()), 0.0);
    for (const auto& [what, amount] : received) {
      const auto [kind, axes] = what;
      if (!traits(kind).in_rings) {
        std::size_t next = 0;
        const std::vector<link_load> more = traffic(kind, axes, broken_).loads();
        for (int l = 0; l < links_.count(); ++l)
          if (links_.live(l)) bytes[std::size_t(l)] += amount * more[next++].bytes;
        continue;
      }
      const torus_group g = mesh_.group(axes);
      const double n = g.devices();
      if (n > 1) add_gather(g, kind, amount * n / (n - 1), bytes);
    }
    for (int l = 0; l < links_.count(); ++l)
      if (is_dead(l))
        for (const int way : links_.way_around(links_.from(l), links_.to(l))) bytes[std::size_t(way)] += bytes[std::size_t(l)];
    std::vector<link_load> all;
    for (int l = 0; l < links_.count(); ++l)
      if (const double b = bytes[std::size_t(l)]; links_.live(l)) all.push_back({links_.from(l), links_.to(l), b, b / links_.rate(l)});
    return all;
  }

 private:
  torus_mesh mesh_;
  faults broken_;
  torus_links links_;
  std::map<std::pair<bool, std::uint32_t>, double> slowdowns_;  // of shifts or of exchanges, by axes

  static bool is_shift(op_ref kind) { return kind == op::collective_permute || is_looped_product(kind); }
  bool is_dead(int link) const { return links_.exists(link) && !links_.live(link); }

  /// The link loads of an all_to_all or a shift in which each device receives one byte.
  link_loads traffic(op_ref kind, std::uint32_t axes, const faults& broken) const {
    if (is_shift(kind)) return link_loads(mesh_, detail::shift(mesh_, axes), broken);
    return link_loads(mesh_, detail::even_exchange(mesh_, axes), broken);
  }

  /// Bytes that a chip sends along ring i of a group in a streamed gather of `whole` bytes, for each chip of the ring. Every part sends the
  /// pieces that it has gathered along the previous rings.
  static double streamed_piece(const torus_group& g, int i, double whole) {
    double pieces = 0, gathered = 1;
    for (int before = 0; before < g.count; ++before) {
      pieces += gathered;
      gathered *= g[(i + g.count - 1 - before) % g.count].extent;
    }
    return whole / g.chips() / g.count * pieces * g.sharers;
  }

  /// Adds a gather of `whole` bytes, or a reduction to `whole` bytes. A ring with a stride has other rings between its positions, with the
  /// same traffic.
  void add_gather(const torus_group& g, op_ref kind, double whole, std::vector<double>& bytes) const {
    for (int i = 0; i < g.count; ++i) {
      const torus_ring& r = g[i];
      const double piece = streamed_piece(g, i, whole);
      for (int chip = 0; chip < mesh_.topology().chips(); ++chip) {
        const int begin = links_.coordinate(chip, r.dim) % (r.extent * r.stride), up = links_.link(r.dim, true, chip);
        if (!links_.exists(up)) continue;
        double behind = 0, ahead = 0;  // chips whose pieces the up link carries, and the down link
        for (int between = 0; between < r.stride; ++between) {
          const int place = (begin - between + r.stride) / r.stride - 1;
          if (!r.wrap && (place < 0 || place == r.extent - 1)) continue;
          behind += r.wrap ? 0.5 * (r.extent - 1) : place + 1;
          ahead += r.wrap ? 0.5 * (r.extent - 1) : r.extent - 1 - place;
        }
        if (kind == op::reduce_scatter) std::swap(behind, ahead);  // a gather backwards
        if (kind == op::all_reduce) behind = ahead = 0.5 * (behind + ahead);
        bytes[std::size_t(up)] += piece * behind;
        bytes[std::size_t(links_.link(r.dim, false, links_.to(up)))] += piece * ahead;
      }
    }
  }

  bool is_along(int from, int to, int dim) const {
    for (int d = 0; d < mesh_.topology().dims; ++d)
      if ((links_.coordinate(from, d) != links_.coordinate(to, d)) != (d == dim)) return false;
    return true;
  }
  /// True if the ring of a chip along a dimension is complete in one direction, or broken only between two neighbors.
  bool stays_joined(int dim, int chip) const {
    const int n = mesh_.topology().extent(dim);
    int dead_up = 0, dead_down = 0, pairs = 0;
    for (int c = 0, at = chip; c < n; ++c, at = links_.to(links_.link(dim, true, at))) {
      const int up = links_.link(dim, true, at), down = links_.link(dim, false, links_.to(up));
      dead_up += is_dead(up);
      dead_down += is_dead(down);
      pairs += is_dead(up) && is_dead(down);
    }
    return dead_up == 0 || dead_down == 0 || (dead_up == 1 && dead_down == 1 && pairs == 1);
  }
};

/// A torus whose links have faults, as a network.
class faulty_torus {
 public:
  faulty_torus(const torus_mesh& mesh, const faults& broken) : mesh_(mesh), links_(mesh, broken) {}

  double seconds(op_ref kind, std::uint32_t axes, const extents& e, std::int64_t bytes_received) const {
    return mesh_.seconds(kind, axes, e, bytes_received) * links_.slowdown(kind, axes);
  }
  bool fits(list_view<int> extents) const { return mesh_.fits(extents); }

 private:
  torus_mesh mesh_;
  mutable plan_links links_;  // caches slowdowns
};
static_assert(network<faulty_torus> && !network_of_nodes<faulty_torus>);

}}  // namespace gshard::v0
