// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "bound_program.hpp"
#include "sampler.hpp"

#include <gshard/core/cost/step_time.hpp>
#include <gshard/gshard.hpp>

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

// The collectives of programs: within a node, between one device of each node, and over all devices.
namespace calibrate {

using cluster_mesh = gs::mesh<gs::axis<"node">, gs::axis<"rank">>;

/// A collective together with a small step that does not need it, so that it is in flight, as in most programs. The other axis of the mesh
/// shards R, so groups move different data. Nodes receive fewer bytes of equal data.
template <class To>
inline constexpr auto reshard_to = [](auto&, auto x, auto beside) { return std::tuple{gs::annotate<To>(x), beside * beside}; };
template <gs::label Other, gs::label Axes>
using gather = gs::program<reshard_to<gs::P<Other, gs::none>>, cluster_mesh, gs::in<"RA", gs::P<Other, Axes>>, gs::in<"I">>;
template <gs::label Other, gs::label Axes>
using exchange = gs::program<reshard_to<gs::P<Other, gs::none, Axes>>, cluster_mesh, gs::in<"RAB", gs::P<Other, Axes, gs::none>>, gs::in<"I">>;
template <gs::label Other, gs::label Partial>
using reduce = gs::program<reshard_to<gs::P<Other, gs::none>>, cluster_mesh, gs::in<"RA", gs::P<Other, gs::none, Partial>>, gs::in<"I">>;
template <gs::label Other, gs::label Axes, gs::label Partial>
using scatter = gs::program<reshard_to<gs::P<Other, Axes>>, cluster_mesh, gs::in<"RA", gs::P<Other, gs::none, Partial>>, gs::in<"I">>;

class collective_points {
 public:
  /// `link_bytes`: bytes per second between two nodes, roughly. A collective that keeps a link busy for over 0.25 s is not measured.
  collective_points(sampler& samples, int nodes, int ranks, int threads, double link_bytes)
      : samples_(samples),
        on_(gs::on_mpi<cluster_mesh>(MPI_COMM_WORLD, {nodes, ranks})),
        in_flight_(gs::on_mpi<cluster_mesh>(MPI_COMM_WORLD, {nodes, ranks}, {.overlap = gs::overlap_mode::on})),
        machine_{.node_devices = ranks},
        threads_(threads),
        link_bytes_(link_bytes) {
    if (ranks > 1) add<"node", "rank", gs::partial<"rank">>(gs::group_reach::within_node, ranks, nodes);
    if (nodes > 1) add<"rank", "node", gs::partial<"node">>(gs::group_reach::between_nodes, nodes, ranks);
    if (nodes > 1 && ranks > 1) add<gs::none, gs::axes<"node", "rank">, gs::partial<"node", "rank">>(gs::group_reach::both, nodes * ranks, 1);
  }
  void store(gs::measured_times& times) const {
    for (const point& p : points_) times.collective(p.kind, p.reach).add(p.bytes, samples_.of(p.sample).typical);
  }

 private:
  struct point {
    gs::op_ref kind{};
    gs::group_reach reach{};
    double bytes = 0;
    std::size_t sample = 0;
  };
  sampler& samples_;
  gs::any_cluster on_;         // decides in the first twelve runs whether a short collective overlaps
  gs::any_cluster in_flight_;  // long collectives always overlap
  gs::machine machine_;
  int threads_;
  double link_bytes_;
  std::vector<point> points_;

  template <gs::label Other, gs::label Axes, gs::label Partial>
  void add(gs::group_reach reach, std::int64_t members, std::int64_t groups) {
    for (std::int64_t bytes = 1 << 10; bytes <= 1 << 24; bytes *= 4) {
      const std::int64_t n = bytes / 4;
      add<gather<Other, Axes>>(reach, {{'R', groups}, {'A', n}, {'I', 8}});
      add<reduce<Other, Partial>>(reach, {{'R', groups}, {'A', n}, {'I', 8}});
      add<scatter<Other, Axes, Partial>>(reach, {{'R', groups}, {'A', n}, {'I', 8}});
      add<exchange<Other, Axes>>(reach, {{'R', groups}, {'A', members}, {'B', n}, {'I', 8}});
    }
  }
  template <class Program>
  void add(gs::group_reach reach, const gs::dims& sizes) {
    static_assert(Program::plan.collectives() == 1);
    auto run = unprepared_program<Program>(on_, sizes, threads_);
    for (const gs::node& step : run->plan().steps) {
      if (!gs::traits(step.kind).collective) continue;
      const std::int64_t received = run->plan().bytes_received(step, run->sizes());
      const double between = machine_.bytes_between_nodes(step.kind, step.attr.axes, run->sizes(), received);
      const bool within = reach == gs::group_reach::within_node;
      const double bytes = within ? double(received) : between;
      const auto is_same = [&](const point& p) { return p.kind == step.kind && p.reach == reach; };
      if (bytes <= 0 || (!within && bytes > 0.25 * link_bytes_) || std::count_if(points_.begin(), points_.end(), is_same) == gs::measured_curve::most) return;
      const auto last = std::find_if(points_.rbegin(), points_.rend(), is_same);
      if (last != points_.rend() && last->bytes >= bytes) return;
      if (!within && bytes > 0.01 * link_bytes_) run = unprepared_program<Program>(in_flight_, sizes, threads_);
      prepare(*run);
      const std::string name = std::string(gs::name(step.kind)) + " of " + std::to_string(std::int64_t(bytes)) + " bytes";
      points_.push_back({step.kind, reach, bytes, samples_.add(name, [run] { run->run({}); })});
    }
  }
};

}  // namespace calibrate
