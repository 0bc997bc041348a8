// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the watch of waits and a run_scope cost: training steps of about 10 ms with and without deadlines.
// usage: mpirun -n 2 bench_watch_overhead [rounds]
#include <gshard/gshard.hpp>

#include "timing.hpp"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
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
  MPI_Init(&argc, &argv);
  {
    const gs::dims sizes{{'B', 1024}, {'M', 256}, {'H', 512}, {'N', 256}};
    const std::vector<float> x(1024 * 256, 0.5f), rate{1e-4f};
    const auto plain = gs::on_mpi<mesh>(MPI_COMM_WORLD, {}, {.deadlines = {.warn = 0, .fail = 0}});
    const auto watched = gs::on_mpi<mesh>(MPI_COMM_WORLD);
    gs::executable<program> without(plain, sizes), with(watched, sizes);
    const gs::run_scope scope(watched);
    const auto run = [&](gs::executable<program>& step) {
      return [&] {
        for (int i = 0; i < 4; ++i) step(x, rate);
      };
    };
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const auto sides =
        bench::compare("watch_overhead", {{"without", run(without)}, {"with", run(with)}, {"without again", run(without)}}, rounds, false,
                       [] { MPI_Barrier(MPI_COMM_WORLD); });
    std::vector<double> ratio, noise;  // of neighbours in time
    for (std::size_t i = 0; i < sides[0].seconds.size(); ++i) {
      ratio.push_back(2 * sides[1].seconds[i] / (sides[0].seconds[i] + sides[2].seconds[i]));
      noise.push_back(sides[2].seconds[i] / sides[0].seconds[i]);
    }
    if (rank == 0)
      std::printf("{\"case\": \"watch_overhead\", \"side\": \"gshard\", \"ms per step without\": %.3f, \"with over without\": %.4f, "
                  "\"without over itself\": %.4f}\n",
                  1e3 * bench::median(sides[0].seconds) / 4, bench::median(ratio), bench::median(noise));
  }
  MPI_Finalize();
}
