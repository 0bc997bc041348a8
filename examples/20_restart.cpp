// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A restart on another number of devices. The checkpoint contains the parameters, the optimizer's state, and a note of the application.
//
//   20_restart                saved on 4 simulated devices, continued on 3
//   mpirun -n 4 20_restart    saved on 4 ranks, continued on 3 of them
#include <gshard/gshard.hpp>
#include <gshard/io.hpp>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace gs = gshard;
using gs::in;
using mesh = gs::mesh<gs::axis<"data">>;

inline constexpr auto training_step = [](auto& m, auto x, auto y, auto rate) {
  auto w1 = m.param("w1", "M,H@data", gs::init::fan_in("M"));
  auto w2 = m.param("w2", "H@data,O", gs::init::fan_in("H"));
  auto h = gs::map<[](auto v) { return gs::tanh(v); }>(gs::einsum<"BM,MH->BH">(x, w1));
  auto error = gs::einsum<"BH,HO->BO">(h, w2) - y;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using training = gs::program<training_step, mesh, in<"B@data,M", double>, in<"B@data,O", double>, in<"", double>,
                             gs::element<double>>;  // the element type of the parameters

constexpr const char* file = "20_restart.safetensors";
const gs::checkpoint_options everything{.scope = gs::checkpoint_scope::everything};

// Trains until 20 steps are done and saves after 10, or resumes from that checkpoint. Returns the last loss.
double train(const gs::cluster<mesh>& cluster, bool continues) {
  gs::parameter_store store(cluster, 42);
  gs::executable<training> step(cluster, {{'B', 24}, {'M', 6}, {'H', 16}, {'O', 1}}, store);
  std::vector<double> x(24 * 6), y(24), rate(1, 0.02);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(double(i));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[6 * i] * x[6 * i + 1];
  int done = 0;
  if (continues) done = std::stoi(gs::load(store, file, everything).metadata.at("done"));
  double loss = 0;
  for (; done < 20; ++done) {
    if (done == 10 && !continues) gs::save(store, file, {{{"done", std::to_string(done)}}, {}}, everything);
    loss = step(x, y, rate).item();
  }
  return loss;
}

void report(double without_stop, double after_restart) {
  std::remove(file);
  std::printf("step 20 without a stop: loss %.8f\nstep 20 after a restart on fewer devices: loss %.8f\n", without_stop, after_restart);
}

int main(int argc, char** argv) {
#if GSHARD_HAS_MPI
  MPI_Init(&argc, &argv);
  int ranks = 1, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (ranks > 1) {
    const double without_stop = train(gs::on_mpi<mesh>(MPI_COMM_WORLD), false);
    const bool is_left = rank < ranks - 1;  // the restart does not use the last rank
    MPI_Comm fewer = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, is_left ? 0 : MPI_UNDEFINED, rank, &fewer);
    const double after_restart = is_left ? train(gs::on_mpi<mesh>(fewer), true) : 0;
    if (rank == 0) report(without_stop, after_restart);
    if (is_left) MPI_Comm_free(&fewer);
    MPI_Finalize();
    return 0;
  }
#else
  static_cast<void>(argc), static_cast<void>(argv);
#endif
  const double without_stop = train(gs::simulate<mesh>(4), false);
  report(without_stop, train(gs::simulate<mesh>(3), true));
#if GSHARD_HAS_MPI
  MPI_Finalize();
#endif
}
