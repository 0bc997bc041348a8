// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Training steps of a mixture of experts under the workloads W1 and W2, before and after experts are placed by their load. Prints rows of a
// Markdown table, with the improvement that a dry run predicts from a hardware file. No token loses a choice in either case.
// usage: mpirun -n 4 bench_expert_balance HARDWARE.json CLUSTER [runs]
#include <gshard/gshard.hpp>
#include <gshard/exec/kernel/move/fill.hpp>
#include <gshard/moe.hpp>
#include <gshard/io/hardware_file.hpp>
#include <gshard/sim/run/dry_run.hpp>
#include <gshard/sim/run/routing_workload.hpp>

#include <mpi.h>

#include "timing.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;
constexpr int experts = 16, replicas = 24, ranks = 4;
constexpr std::int64_t groups = 4, tokens = 2048, model = 256, hidden = 128;

/// The routing is an input. `Slots`: the slots of an expert or a replica, in percent of the tokens of a group.
template <int Slots, bool Replicas>
inline constexpr auto layer = [](auto& m, auto x, auto logits, auto rate) {
  constexpr double whole = Replicas ? experts : Slots * experts / 100.0;
  auto route = gs::top_k_gating(gs::softmax(logits), {.k = 2, .slots = {whole}});
  gs::symbol wi = x, wo = x;
  if constexpr (Replicas) {
    const auto expert_of = gs::replicas_of_experts(m, "R", "E");
    wi = gs::replica_param(m, expert_of, "wi", "RMF", P<"x", none, none>{}, gs::init::fan_in("M"));
    wo = gs::replica_param(m, expert_of, "wo", "RFM", P<"x", none, none>{}, gs::init::fan_in("F"));
    route = gs::send_to_replicas(route, expert_of, {Slots * replicas / 100.0});
  } else {
    wi = m.param("wi", "EMF", P<"x", none, none>{}, gs::init::fan_in("M"));
    wo = m.param("wo", "EFM", P<"x", none, none>{}, gs::init::fan_in("F"));
  }
  const auto in = gs::einsum<"GSEC,GSM->EGCM">(route.dispatch, x);
  const auto out = gs::einsum<"EGCF,EFM->GECM">(gs::relu(gs::einsum<"EGCM,EMF->EGCF">(in, wi)), wo);
  const auto y = gs::einsum<"GSEC,GECM->GSM">(route.combine, out);
  const auto loss = gs::mean((y - x) * (y - x));
  gs::adam{}.minimize(m, loss, rate);
  return std::tuple{loss, gs::sum<"GE->E">(route.demand), gs::sum(route.overflow)};
};
template <int Slots, bool Replicas>
using program = gs::program<layer<Slots, Replicas>, mesh, gs::in<"GSM", P<"x", none, none>>, gs::in<"GSE", P<"x", none, none>>, gs::in<"">>;

const gs::dims sizes{{'G', groups}, {'S', tokens}, {'M', model}, {'F', hidden}, {'E', experts}, {'R', replicas}};

struct result {
  double measured = 0, predicted = 0, imbalance = 0;
};

struct contest {
  gs::hardware on;
  std::string cluster;
  int runs = 7;
  gs::cluster<mesh> ranks_ = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  std::vector<float> x = std::vector<float>(std::size_t(groups * tokens * model));

  /// Runs the steps of a program. `move` is called after the first step with the demand of the experts. It returns the share of slots that
  /// the busiest device fills.
  template <class Program>
  result run(const gs::routing_workload& w, const std::function<double(gs::executable<Program>&, const std::vector<double>&)>& move) {
    gs::executable<Program> train(ranks_, sizes);
    const std::vector<float> logits = w.logits(0), rate{1e-3f};
    double filled = 1;
    std::vector<double> seconds;
    for (int i = -2; i < runs; ++i) {
      MPI_Barrier(MPI_COMM_WORLD);
      const auto begin = std::chrono::steady_clock::now();
      const auto [loss, demand, overflow] = train(x, logits, rate);
      double mine = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), slowest = 0;
      MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      if (i >= 0) seconds.push_back(slowest);
      if (i == -2) {
        const std::vector<float> loads = gs::to_global(demand);
        filled = move(train, {loads.begin(), loads.end()});
      } else if (overflow.item() != 0) {
        throw gs::error("a choice was lost: " + std::to_string(overflow.item()));
      }
    }
    gs::dry_run_options options;
    options.overlap = true;
    options.share.filled_slots = filled;
    const gs::run_record record = gs::dry_run(Program::plan, Program::plan.bind(sizes, std::array{ranks}), on, options);
    return {bench::median(seconds), record.seconds, 0};
  }

  template <int Slots, int ReplicaSlots>
  void row(gs::workload what) {
    const gs::routing_workload w{
        .what = what, .seed = 4, .experts = experts, .ranks = ranks, .sources = int(groups), .tokens = tokens, .k = 2};
    double imbalance[2]{};
    const result before = run<program<Slots, false>>(w, [&](auto&, const std::vector<double>& load) {
      const auto even = gs::expert_placement::even(experts, {ranks, experts / ranks});
      imbalance[0] = even.imbalance(load);
      return even.filled_slots(load, double(groups) * tokens * Slots / 100);
    });
    const result after = run<program<ReplicaSlots, true>>(w, [&](auto& train, const std::vector<double>& load) {
      gs::placed_experts placed(train.executor());
      placed.balance(load);
      imbalance[1] = placed.placement().imbalance(load);
      return placed.placement().filled_slots(load, double(groups) * tokens * ReplicaSlots / 100);
    });
    if (ranks_.devices()[0] != 0) return;
    const double measured = before.measured / after.measured, predicted = before.predicted / after.predicted;
    std::printf("| %s | %s | %.2f -> %.2f | %.0f -> %.0f ms | %.0f -> %.0f ms | %.2fx | %.2fx | %+.1f %% |\n",
                std::string(name(what)).c_str(), cluster.c_str(), imbalance[0], imbalance[1], 1e3 * before.measured, 1e3 * after.measured,
                1e3 * before.predicted,
                1e3 * after.predicted, measured, predicted, 100 * (predicted / measured - 1));
    std::fflush(stdout);
  }
};

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: mpirun -n 4 ... bench_expert_balance HARDWARE.json CLUSTER [runs]\n");
    return 2;
  }
  MPI_Init(&count, &arguments);
  try {
    contest c{gs::read_hardware(arguments[1]), arguments[2], count > 3 ? std::atoi(arguments[3]) : 7};
    gs::kernel::fill_normal(c.x.data(), gs::kernel::whole(1, {std::int64_t(c.x.size())}), 1, {1, 1, 3});
    c.row<49, 13>(gs::workload::hot_expert_set);
    c.row<27, 12>(gs::workload::hot_rank);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_expert_balance: %s\n", e.what());
    MPI_Abort(MPI_COMM_WORLD, 1);  // other ranks may wait for this one
  }
  MPI_Finalize();
}
