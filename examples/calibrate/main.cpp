// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mpirun ... gshard-calibrate -o cluster.json: measures the cluster on which it is started, and writes a hardware file.

#include "collectives.hpp"
#include "operations.hpp"
#include "overlap.hpp"
#include "sampler.hpp"

#include <gshard/gshard.hpp>
#include <gshard/io/hardware_file.hpp>

#include <mpi.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace calibrate;

struct options {
  std::string file = "cluster.json", name;
  int rounds = 5;
};

/// The number of nodes, and of ranks per node. Throws if the nodes have different numbers of ranks.
std::pair<int, int> shape_of(const std::vector<int>& node) {
  const int nodes = int(std::set<int>(node.begin(), node.end()).size()), ranks = int(node.size()) / nodes;
  for (const int n : node)
    if (std::count(node.begin(), node.end(), n) != ranks) throw gs::error("the nodes have different numbers of ranks");
  return {nodes, ranks};
}

/// The start and the rate of a network: the time of its shortest exchange, and the slope between its two longest ones.
void fit(const gs::measured_curve& c, double& start, double& rate) {
  if (!c.known()) return;
  start = c.value[0];
  const auto last = std::size_t(c.count - 1);
  rate = c.count > 1 && c.value[last] > c.value[last - 1] ? (c.at[last] - c.at[last - 1]) / (c.value[last] - c.value[last - 1])
                                                          : c.at[last] / c.value[last];
}

gs::hardware measured_cluster(const options& o, std::vector<summary>& spreads, std::vector<std::string>& names) {
  const auto base = gs::on_mpi<one_axis>(MPI_COMM_WORLD);
  const gs::node_map map = base.backend().nodes();
  const int processes = base.size();
  const auto [nodes, ranks] = map.node.empty() ? std::pair(1, processes) : shape_of(map.node);
  const auto on = gs::on_mpi<cluster_mesh>(MPI_COMM_WORLD, {nodes, ranks});
  const auto alone = gs::on_one_device<one_axis>();
  const int mine = gs::executor(stream::plan, gs::kernels_of<stream>, base, {{'A', 8}}, gs::parameter_store(base)).threads;

  gs::machine m{.node_devices = ranks};
  gs::measured_times& t = m.measured;
  operation_times operations(alone, mine);
  operations.measure(4 * o.rounds);

  sampler local;
  const product_points products(local, alone, mine);
  constexpr std::int64_t elements = 1 << 22;
  const auto add = bound_program<stream>(alone, {{'A', elements}}, mine);
  const std::size_t memory = local.add("memory", [&] { add->run({}); });
  local.measure(o.rounds);
  products.store(m);
  operations.store(t, processes);
  m.memory_bytes = 12.0 * double(elements) / local.of(memory).typical;

  sampler samples;
  double link_bytes = 0;  // bytes per second, as a probe measures them
  if (nodes > 1) {
    const auto probe = bound_program<gather<"rank", "node">>(on, {{'R', ranks}, {'A', 1 << 16}, {'I', 8}}, mine);
    sampler s;
    const std::size_t p = s.add("probe", [&] { probe->run({}); });
    s.measure(3);
    link_bytes = double(ranks) * (1 << 18) * (nodes - 1) / nodes / s.of(p).typical;
  }
  const collective_points collectives(samples, nodes, ranks, mine, link_bytes);
  const auto with_agreement = std::make_shared<gs::executor>(stream::plan, gs::kernels_of<stream>, base, gs::dims{{'A', 8}}, gs::parameter_store(base));
  const std::size_t start = samples.add("start of a run", [&] { with_agreement->run({}); });
  samples.measure(o.rounds);
  collectives.store(t);
  t.run_start = samples.of(start).typical;
  fit(t.collective(gs::op::all_to_all, gs::group_reach::between_nodes), m.start, m.link_bytes);
  fit(t.collective(gs::op::all_to_all, gs::group_reach::within_node), m.node_start, m.node_bytes);

  t.hidden = 0;
  if (nodes > 1) {
    sampler s;
    const double seconds = 0.1;
    const auto bytes = std::int64_t(std::clamp(m.link_bytes * seconds / 2, 65536.0, double(1 << 23))) / 1024 * 1024;
    const auto rows = std::int64_t(std::clamp(seconds * m.flops / (6 * 2 * 256.0 * 256.0), 64.0, 65536.0));
    const overlap_points overlap(s, on, mine, bytes, rows);
    s.measure(o.rounds, 1.5);
    t.hidden = overlap.hidden();
  }
  for (const sampler* s : {&local, &samples})
    for (std::size_t i = 0; i < s->size(); ++i) {
      spreads.push_back(s->of(i));
      names.push_back(s->name(i));
    }
  return gs::make_cluster(o.name.empty() ? "cluster of " + std::to_string(nodes) + "x" + std::to_string(ranks) : o.name, nodes, m);
}

void print(const gs::hardware& h, const std::vector<summary>& spreads, const std::vector<std::string>& names, double seconds) {
  const gs::machine& m = h.device;
  std::printf("%s: %d nodes x %d ranks, measured in %.0f s\n", h.name.c_str(), h.devices() / m.node_devices, m.node_devices, seconds);
  if (h.devices() > m.node_devices)
    std::printf("between nodes: %.3g us, %.3g MB/s per node; %.0f %% of a collective passes while products run\n", 1e6 * m.start,
                1e-6 * m.link_bytes, 100 * m.measured.hidden);
  if (m.node_devices > 1) std::printf("within a node: %.3g us, %.3g MB/s per rank\n", 1e6 * m.node_start, 1e-6 * m.node_bytes);
  std::printf("per rank, all at once: %.3g GFLOP/s, memory %.3g GB/s\n", 1e-9 * m.flops, 1e-9 * m.memory_bytes);
  double worst = 0;
  std::vector<double> all;
  for (const summary& s : spreads) all.push_back(s.spread);
  std::sort(all.begin(), all.end());
  if (!all.empty()) worst = all.back();
  std::printf("spread of the middle half of the samples: %.0f %% in the median, %.0f %% at most\n", all.empty() ? 0 : 100 * all[all.size() / 2],
              100 * worst);
  for (std::size_t i = 0; i < spreads.size(); ++i)
    if (spreads[i].spread > 0.25) std::printf("  %s: %.3g ms, spread %.0f %%\n", names[i].c_str(), 1e3 * spreads[i].typical, 100 * spreads[i].spread);
}

int run(const options& o) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<summary> spreads;
  std::vector<std::string> names;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::ofstream out;
  if (rank == 0) out.open(o.file);
  int is_open = rank != 0 || out.is_open();  // before anything is measured
  MPI_Bcast(&is_open, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (!is_open && rank == 0) throw gs::error("'" + o.file + "' cannot be written");
  if (!is_open) return 1;
  const gs::hardware h = measured_cluster(o, spreads, names);
  if (rank != 0) return 0;
  out << gs::hardware_json(h).dump(1) << '\n';
  out.close();
  if (!out) throw gs::error("'" + o.file + "' cannot be written");
  print(gs::read_hardware(o.file), spreads, names, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  CLI::App app("Measures the cluster on which mpirun starts it, and writes a hardware file for gs::read_hardware.\nAll ranks measure at once, "
               "with the collectives and kernels of programs.\nIt takes less than a minute. Run nothing else meanwhile.\n",
               "gshard-calibrate");
  options o;
  app.add_option("-o,--output", o.file, "the file")->capture_default_str();
  app.add_option("--name", o.name, "the name of the cluster in reports");
  app.add_option("--rounds", o.rounds, "samples of every time; where they spread, up to three times as many, for half a second")->capture_default_str()->check(CLI::Range(1, 1000));
  app.footer("Example:\n  mpirun -n 8 gshard-calibrate -o cluster.json");
  try {
    app.parse(count, arguments);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    std::cerr << "gshard-calibrate: " << e.what() << "; see gshard-calibrate --help\n";
    return 2;
  }
  MPI_Init(&count, &arguments);
  int status = 1;
  try {
    status = run(o);
  } catch (const std::exception& e) {
    std::cerr << "gshard-calibrate: " << e.what() << '\n';
    MPI_Abort(MPI_COMM_WORLD, 1);  // other ranks may wait for this one
  }
  MPI_Finalize();
  return status;
}
