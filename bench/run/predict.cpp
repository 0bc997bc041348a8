// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compares training steps on the ranks that mpirun starts with the times that a dry run predicts from a hardware file, and the sharding that
// the cost model prefers with the fastest of ten. Prints rows of two tables in Markdown.
// usage: mpirun ... bench_predict HARDWARE.json CLUSTER [runs] [--details]
#include <gshard/gshard.hpp>
#include <gshard/io/hardware_file.hpp>
#include <gshard/report.hpp>
#include <gshard/sim/run/run_clock.hpp>

#include <mpi.h>

#include "calibrate/bound_program.hpp"
#include "timing.hpp"
#include "transformer_program.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gs = gshard;

namespace {

using mesh = bench::expert_mesh;
using gs::none, gs::P;

inline constexpr auto route = [](auto& m, auto tokens, auto mask, auto rate) {
  const auto layer = gs::nn::moe<"expert">(m.scope("moe"), tokens, mask, {.routing = {.k = 2, .slots = gs::capacity{2}}});
  const auto loss = gs::mean(layer.y * layer.y);
  gs::adam{}.minimize(m, loss + 0.01 * m.auxiliary(), rate);
  return loss;
};
using moe_layer = gs::program<route, mesh, gs::in<"GSM", P<"expert", none, none>>, gs::in<"GS", P<"expert", none>>, gs::in<"">>;

/// Four layers. In: of the weights MH of the first and third one. Out: of the weights HM of the others.
template <class In, class Out>
inline constexpr auto layers = [](auto& m, auto input, auto rate) {
  auto y = input;
  for (const char* name : {"a", "b"}) {
    const auto layer = m.scope(name);
    y = gs::einsum<"BH,HM->BM">(gs::relu(gs::einsum<"BM,MH->BH">(y, layer.param("in", "MH", In{}, gs::init::fan_in("M")))),
                                layer.param("out", "HM", Out{}, gs::init::fan_in("H")));
  }
  const auto loss = gs::mean(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
template <class Input, class In, class Out>
using layers_program = gs::program<layers<In, Out>, mesh, gs::in<"BM", Input>, gs::in<"">>;
using whole = P<none, none>;
using first = P<"expert", none>;
using second = P<none, "expert">;

struct settings {
  gs::hardware on;
  std::string cluster;
  int runs = 7;
  bool details = false;
};

/// A program with its predicted and measured seconds.
struct measured_program {
  std::string name;
  std::shared_ptr<gs::executor> run;
  double predicted = 0, price = 0;
  std::vector<double> seconds{};

  template <class Program>
  static measured_program of(std::string name, const settings& s, const gs::cluster<mesh>& on, const gs::dims& sizes) {
    measured_program p{.name = std::move(name), .run = {}};
    p.run = std::make_shared<gs::executor>(Program::plan, gs::kernels_of<Program>, on, sizes, gs::parameter_store(on));
    p.predicted = gs::dry_run(p.run->plan(), p.run->sizes(), s.on, options_on(on)).seconds;
    p.price = gs::price(p.run->plan(), p.run->sizes(), s.on.device).seconds();
    return p;
  }
  static gs::dry_run_options options_on(const gs::cluster<mesh>& on) {
    gs::dry_run_options options;
    options.overlap = !on.backend().shares_memory();
    return options;
  }
  void warm_up() const {
    calibrate::choose_overlap(*run);
  }
  /// Seconds of the slowest rank.
  void measure() {
    calibrate::write_inputs(*run);
    MPI_Barrier(MPI_COMM_WORLD);
    const auto begin = std::chrono::steady_clock::now();
    run->run({});
    const double mine = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    MPI_Allreduce(&mine, &seconds.emplace_back(), 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
  double median() const { return bench::median(seconds); }
};

void compare(measured_program p, const settings& s, const gs::cluster<mesh>& on) {
  p.warm_up();
  for (int i = 0; i < s.runs; ++i) p.measure();
  gs::run_clock clock(*p.run, s.on, measured_program::options_on(on));
  p.warm_up();
  const gs::run_record record = clock.record();
  if (on.devices()[0] != 0) return;
  std::printf("| %s | %s | %.1f ms | %.1f ms | %+.0f %% |\n", p.name.c_str(), s.cluster.c_str(), 1e3 * p.predicted, 1e3 * p.median(),
              100 * (p.predicted / p.median() - 1));
  if (s.details) std::fprintf(stderr, "%s\n", gs::describe(record, p.run->plan()).c_str());
  std::fflush(stdout);
}

/// Ten shardings of the same layers. The cost model prefers the one with the lowest price, as `search_shardings` does.
void compare_layouts(std::int64_t rows, const settings& s, const gs::cluster<mesh>& on) {
  const gs::dims sizes{{'B', rows}, {'M', 256}, {'H', 1024}};
  std::vector<measured_program> all;
  const auto add = [&]<class Program>(const char* name) { all.push_back(measured_program::of<Program>(name, s, on, sizes)); };
  add.operator()<layers_program<whole, whole, whole>>("all replicated");
  add.operator()<layers_program<first, whole, whole>>("rows");
  add.operator()<layers_program<first, first, first>>("rows, weights by M and H");
  add.operator()<layers_program<first, second, second>>("rows, weights by H and M");
  add.operator()<layers_program<first, second, first>>("rows, weights by H");
  add.operator()<layers_program<first, first, second>>("rows, weights by M");
  add.operator()<layers_program<whole, second, first>>("weights by H");
  add.operator()<layers_program<whole, first, second>>("weights by M");
  add.operator()<layers_program<second, first, first>>("columns, weights by M and H");
  add.operator()<layers_program<second, second, first>>("columns, weights by H");
  for (const measured_program& p : all) p.warm_up();
  for (int i = 0; i < s.runs; ++i)
    for (measured_program& p : all) p.measure();
  if (on.devices()[0] != 0) return;
  const auto least = [&](auto value) {
    return *std::ranges::min_element(all, {}, value);
  };
  const measured_program chosen = least([](const measured_program& p) { return p.price; });
  const measured_program best = least([](const measured_program& p) { return p.median(); });
  std::printf("| layers, %d rows | %s | %s | %.1f ms | %s | %.1f ms | %.2f |\n", int(rows), s.cluster.c_str(), chosen.name.c_str(),
              1e3 * chosen.median(), best.name.c_str(), 1e3 * best.median(), chosen.median() / best.median());
  std::fflush(stdout);
  if (!s.details) return;
  for (const measured_program& p : all)
    std::fprintf(stderr, "  %-28s price %8.1f ms, predicted %8.1f ms, measured %8.1f ms\n", p.name.c_str(), 1e3 * p.price, 1e3 * p.predicted,
                 1e3 * p.median());
}

void run_all(const settings& s) {
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  const std::int64_t p = on.extent(0);
  if (s.on.devices() != int(p))
    throw gs::error(s.on.name + " has " + std::to_string(s.on.devices()) + " devices, this run " + std::to_string(p));
  const auto row = [&]<class Program>(const char* name, const gs::dims& sizes) {
    compare(measured_program::of<Program>(name, s, on, sizes), s, on);
  };
  const gs::dims sentences{{'G', p},   {'B', 32 / p}, {'S', 24},  {'T', 24}, {'L', 24},  {'M', 128},
                           {'H', 4}, {'D', 32},     {'F', 512}, {'E', 8},  {'V', 4096}};
  row.operator()<bench::transformer_program<2>>("translator", sentences);
  row.operator()<moe_layer>("MoE layer", {{'G', p}, {'S', 2048 / p}, {'M', 256}, {'F', 1024}, {'E', 8}});
  const gs::dims sizes{{'B', 2048}, {'M', 256}, {'H', 1024}};
  row.operator()<layers_program<first, whole, whole>>("dense layers", sizes);
  row.operator()<layers_program<first, first, first>>("FSDP", sizes);
  for (const std::int64_t rows : {64, 512, 2048}) compare_layouts(rows, s, on);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: mpirun ... bench_predict HARDWARE.json CLUSTER [runs] [--details]\n");
    return 2;
  }
  MPI_Init(&count, &arguments);
  try {
    const bool details = std::string_view(arguments[count - 1]) == "--details";
    const int runs = count > 3 ? std::atoi(arguments[3]) : 0;
    run_all({gs::read_hardware(arguments[1]), arguments[2], runs > 0 ? runs : 7, details});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_predict: %s\n", e.what());
    MPI_Abort(MPI_COMM_WORLD, 1);  // other ranks may wait for this one
  }
  MPI_Finalize();
}
