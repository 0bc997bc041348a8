// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Training steps on the ranks that mpirun starts, beside the times that a dry run predicts from a hardware file: rows of a table in Markdown.
// usage: mpirun ... bench_predict HARDWARE.json CLUSTER [runs] [--kinds]
#include <gshard/gshard.hpp>
#include <gshard/io/hardware_file.hpp>
#include <gshard/report.hpp>
#include <gshard/sim/run_clock.hpp>

#include <mpi.h>

#include "calibrate/bound_program.hpp"
#include "timing.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace gs = gshard;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;
using gs::none, gs::P;

inline constexpr gs::nn::transformer_options model{
    .encoder_layers = 2, .decoder_layers = 2, .dropout = 0, .moe = {gs::capacity{2}, gs::second_expert::always}};
inline constexpr auto translate = [](auto& m, auto source, auto target_in, auto target_out, auto rate) {
  gs::nn::routing_summary routing;
  const auto table = m.param("embedding", "VM", gs::init::fan_in("M"));
  const auto source_mask = gs::nn::real_tokens(m, source), target_mask = gs::nn::real_tokens(m, target_in);
  const auto memory = gs::nn::encode<"x">(m.scope("encoder"), table, source, source_mask, model, routing);
  const auto y = gs::nn::decode<"x">(m.scope("decoder"), table, target_in, target_mask, memory, source_mask, model, routing);
  const auto loss = gs::mean(gs::cross_entropy(gs::einsum<"GBTM,VM->GBTV">(y, table), target_out, 0.1));
  gs::adam{}.minimize(m, loss + 0.01 * m.auxiliary(), rate);
  return loss;
};
template <gs::fixed_string Letters>
using ids = gs::in<Letters, P<"x", none, none>, std::int32_t>;
using translator = gs::program<translate, mesh, ids<"GBS">, ids<"GBT">, ids<"GBT">, gs::in<"">>;

inline constexpr auto route = [](auto& m, auto x, auto mask, auto rate) {
  const auto layer = gs::nn::moe<"x">(m.scope("moe"), x, mask, {gs::capacity{2}, gs::second_expert::always});
  const auto loss = gs::mean(layer.y * layer.y);
  gs::adam{}.minimize(m, loss + 0.01 * m.auxiliary(), rate);
  return loss;
};
using moe_layer = gs::program<route, mesh, gs::in<"GSM", P<"x", none, none>>, gs::in<"GS", P<"x", none>>, gs::in<"">>;

/// Four layers, the batch sharded; weights replicated, or sharded and gathered for use.
template <class Weight>
inline constexpr auto layers = [](auto& m, auto x, auto rate) {
  auto y = x;
  for (const char* name : {"a", "b"}) {
    const auto layer = m.scope(name);
    y = gs::einsum<"BH,HM->BM">(gs::relu(gs::einsum<"BM,MH->BH">(y, layer.param("in", "MH", Weight{}, gs::init::fan_in("M")))),
                                layer.param("out", "HM", Weight{}, gs::init::fan_in("H")));
  }
  const auto loss = gs::mean(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using dense = gs::program<layers<P<none, none>>, mesh, gs::in<"BM", P<"x", none>>, gs::in<"">>;
using fsdp = gs::program<layers<P<"x", none>>, mesh, gs::in<"BM", P<"x", none>>, gs::in<"">>;

struct settings {
  gs::hardware on;
  std::string cluster;
  int runs = 7;
  bool kinds = false;
};

template <class Program>
void compare(const char* what, const settings& s, const gs::cluster<mesh>& on, const gs::dims& sizes) {
  gs::executor run(Program::plan, gs::kernels_of<Program>, on, sizes, gs::parameter_store(on));
  std::vector<double> seconds;
  for (int i = -1; i < s.runs; ++i) {
    calibrate::write_inputs(run);
    MPI_Barrier(MPI_COMM_WORLD);
    const auto begin = std::chrono::steady_clock::now();
    run.run({});
    double mine = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (i >= 0) seconds.push_back(slowest);
  }
  gs::dry_run_options options;
  options.overlap = !on.on().shares_memory();
  gs::run_clock clock(run, s.on, options);
  calibrate::write_inputs(run);
  run.run({});
  const gs::run_record record = clock.record();
  if (on.devices()[0] != 0) return;
  const double measured = bench::median(seconds);
  std::printf("| %s | %s | %.1f ms | %.1f ms | %+.0f %% |\n", what, s.cluster.c_str(), 1e3 * record.seconds, 1e3 * measured,
              100 * (record.seconds / measured - 1));
  if (s.kinds) std::printf("\n```text\n%s```\n\n", gs::describe(record, run.plan()).c_str());
  std::fflush(stdout);
}

void run_all(const settings& s) {
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  const std::int64_t p = on.extent(0);
  if (s.on.devices() != int(p)) throw gs::error(s.on.name + " has " + std::to_string(s.on.devices()) + " devices, this run " + std::to_string(p));
  compare<translator>("translator", s, on,
                      {{'G', p}, {'B', 32 / p}, {'S', 24}, {'T', 24}, {'L', 24}, {'M', 128}, {'H', 4}, {'D', 32}, {'F', 512}, {'E', 8}, {'V', 4096}});
  compare<moe_layer>("MoE layer", s, on, {{'G', p}, {'S', 2048 / p}, {'M', 256}, {'F', 1024}, {'E', 8}});
  compare<dense>("dense layers", s, on, {{'B', 2048}, {'M', 256}, {'H', 1024}});
  compare<fsdp>("FSDP", s, on, {{'B', 2048}, {'M', 256}, {'H', 1024}});
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: mpirun ... bench_predict HARDWARE.json CLUSTER [runs] [--kinds]\n");
    return 2;
  }
  MPI_Init(&count, &arguments);
  try {
    const bool kinds = std::string_view(arguments[count - 1]) == "--kinds";
    run_all({gs::read_hardware(arguments[1]), arguments[2], count > 3 && std::atoi(arguments[3]) > 0 ? std::atoi(arguments[3]) : 7, kinds});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_predict: %s\n", e.what());
    MPI_Abort(MPI_COMM_WORLD, 1);  // other ranks may wait for this one
  }
  MPI_Finalize();
}
