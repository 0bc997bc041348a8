// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The cost of the watch of waits with a run_scope, and of telemetry: training steps of about 10 ms with and without them.
// usage: mpirun -n 2 bench_monitoring_overhead [rounds]
#include <gshard/gshard.hpp>
#include <gshard/survive/monitor/telemetry.hpp>

#include "timing.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;
inline constexpr auto training = [](auto& m, auto x, auto rate) {
  auto h = gs::relu(gs::einsum<"BM,MH->BH">(x, m.param("in", "MH", P<none, none>{}, gs::init::normal(0.1))));
  auto y = gs::einsum<"BH,HN->BN">(h, m.param("out", "HN", P<none, none>{}, gs::init::normal(0.1)));
  auto loss = gs::mean(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using program = gs::program<training, mesh, gs::in<"BM", P<"x", none>>, gs::in<"">>;

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 101;
  const std::string directory = std::filesystem::temp_directory_path() / ("gshard-bench-" + std::to_string(::getpid()));
  MPI_Init(&argc, &argv);
  {
    const gs::dims sizes{{'B', 1024}, {'M', 256}, {'H', 512}, {'N', 256}};
    const std::vector<float> x(1024 * 256, 0.5f), rate{1e-4f};
    const auto plain = gs::on_mpi<mesh>(MPI_COMM_WORLD, {}, {.deadlines = {.warn = 0, .fail = 0}});
    const auto watched = gs::on_mpi<mesh>(MPI_COMM_WORLD);
    gs::executable<program> without(plain, sizes), with(watched, sizes), recorded(watched, sizes);
    const gs::run_scope scope(watched);
    gs::telemetry telemetry(watched, {.directory = directory, .prometheus = directory});
    telemetry.add(recorded);
    std::uint32_t number = 0;
    const auto four = [](auto step) {
      return [=] {
        for (int i = 0; i < 4; ++i) step();
      };
    };
    const auto step_without = four([&] { without(x, rate); });
    const auto sides = bench::compare("monitoring_overhead",
                                      {{"without", step_without},
                                       {"watched", four([&] { with(x, rate); })},
                                       {"recorded", four([&] {
                                          const auto step = telemetry.step(++number);
                                          telemetry.value("loss", recorded(x, rate).item());
                                        })},
                                       {"without again", step_without}},
                                      rounds, false, [] { MPI_Barrier(MPI_COMM_WORLD); });
    const auto ratio = [&](std::size_t side) {  // the median ratio to the runs without monitoring in the same round
      std::vector<double> all;
      for (std::size_t i = 0; i < sides[0].seconds.size(); ++i)
        all.push_back(2 * sides[side].seconds[i] / (sides[0].seconds[i] + sides[3].seconds[i]));
      return bench::median(all);
    };
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
      std::printf("{\"case\": \"monitoring_overhead\", \"side\": \"gshard\", \"ms per step without\": %.3f, \"watched over without\": %.4f, "
                  "\"recorded over without\": %.4f, \"without over itself\": %.4f}\n",
                  1e3 * bench::median(sides[0].seconds) / 4, ratio(1), ratio(2), ratio(3));
  }
  std::filesystem::remove_all(directory);
  MPI_Finalize();
}
