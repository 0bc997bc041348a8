// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The same program on MPI ranks: mpirun -n 2 07_mpi. The user initializes and finalizes MPI; gshard does neither.
#include <gshard/gshard.hpp>

#include <mpi.h>

#include <iostream>
#include <vector>

namespace gs = gshard;
using gs::in;
using mesh = gs::mesh<gs::axis<"data">>;

inline constexpr auto dense = [](auto& m, auto x) {
  return gs::relu(gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", gs::init::normal(1))));
};
using program = gs::program<dense, mesh, in<"B@data,M">>;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {  // everything that uses the cluster ends before MPI_Finalize
    const auto ranks = gs::on_mpi<mesh>(MPI_COMM_WORLD);
    const gs::dims sizes{{'B', 7}, {'M', 4}, {'H', 8}};
    const std::vector<float> x(7 * 4, 1.0f);  // whole, and the same on every rank
    gs::executable<program> on_ranks(ranks, sizes), simulated(gs::simulate<mesh>(ranks.size()), sizes);
    const std::vector<float> y = gs::to_global(on_ranks(x));  // collective: every rank calls it
    if (ranks.backend().leader())
      std::cout << y.size() << " numbers on " << ranks.size() << " ranks; the same bits as on simulated devices: "
                << (y == gs::to_global(simulated(x)) ? "yes" : "no") << '\n';
  }
  MPI_Finalize();
}
