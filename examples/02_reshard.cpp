// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Distributed tensors by hand: their types contain their shardings, and the compiler chooses the communication.
//
//   02_reshard                 8 simulated devices, no launcher
//   mpirun -n 4 02_reshard     one device per process

#include <gshard/gshard.hpp>

#include <iostream>
#include <vector>

namespace gs = gshard;
using gs::P, gs::none;
using mesh = gs::mesh<gs::axis<"x">>;

int main(int argc, char** argv) {
#if GSHARD_HAS_MPI
  MPI_Init(&argc, &argv);
  int ranks = 1, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto cluster = ranks > 1 ? gs::on_mpi<mesh>(MPI_COMM_WORLD) : gs::simulate<mesh>(8);
  const bool leader = rank == 0;
#else
  static_cast<void>(argc), static_cast<void>(argv);
  const auto cluster = gs::simulate<mesh>(8);
  const bool leader = true;
#endif
  {
    std::vector<float> ones(10 * 6, 1.0f);
    const auto a = gs::from_global<float, P<none, "x">>(cluster, {10, 6}, ones);  // columns are sharded, unevenly
    const auto b = gs::from_global<float, P<"x", none>>(cluster, {6, 10}, ones);  // rows are sharded

    // The contracted index is sharded, so the product is a partial sum, and its type says so ...
    const gs::tensor<float, P<none, none, gs::partial<"x">>> c = gs::einsum<"AB,BC->AC">(a, b);
    // ... until a reshard completes it: one reduce_scatter.
    const gs::tensor<float, P<"x", none>> d = gs::reshard<P<"x", none>>(c);
    // From rows to columns: one all_to_all.
    const gs::tensor<float, P<none, "x">> e = gs::all_to_all<0, 1>(d);

    const std::vector<float> whole = gs::to_global(e);
    if (leader) std::cout << "every element of the product is " << whole.front() << '\n';
  }
#if GSHARD_HAS_MPI
  MPI_Finalize();
#endif
}
