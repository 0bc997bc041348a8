// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Inside an application with its own MPI, Eigen and blocks of rows: mpirun -n 3 15_inside_an_application. Its loop stays.
#include <gshard/exec/tensor/eigen.hpp>
#include <gshard/gshard.hpp>
#include <gshard/exec/tensor/local_blocks.hpp>

#include <Eigen/Core>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"rows">>;

// gshard computes y = A x, with A, x and y sharded by rows.
inline constexpr auto multiply = [](auto&, auto a, auto x) { return gs::annotate<"I@rows">(gs::einsum<"IJ,J->I">(a, x)); };
using matvec = gs::program<multiply, mesh, in<"I@rows,J", double>, in<"J@rows", double>>;
static_assert(matvec::plan.count(gs::op::all_gather) == 1 && matvec::plan.collectives() == 1);  // one all_gather, of x

/// The largest eigenvalue of A(i, j) = min(i, j) + 1, by the power method on the processes of `comm`.
double largest_eigenvalue(MPI_Comm comm, int n) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  // The application's blocks: later ranks have more rows. Its matrices are column-major.
  const auto first_of = [&](int r) { return n * r * (r + 1) / (ranks * (ranks + 1)); };
  const int first = first_of(rank), rows = first_of(rank + 1) - first;
  Eigen::MatrixXd a(rows, n);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < n; ++j) a(i, j) = std::min(first + i, j) + 1;
  Eigen::VectorXd x = Eigen::VectorXd::Ones(rows), y(rows);

  const auto cluster = gs::on_mpi<mesh>(comm);  // duplicates the communicator
  gs::tensor<double, P<"rows", none>> a_shards = gs::from_local_blocks<P<"rows", none>>(cluster, {n, n}, {gs::local_block(a, {first, 0})});
  gs::tensor<double, P<"rows">> x_shards(cluster, {n}), y_shards(cluster, {n});
  gs::local_blocks<double, P<"rows">> x_blocks(cluster, {n}, {gs::local_block(x, {first})});
  gs::local_blocks<double, P<"rows">> y_blocks(cluster, {n}, {gs::local_block(y, {first})});
  gs::executable<matvec> run(cluster, a_shards, x_shards);  // has their extents
  run.bind_input<0>(a_shards);
  run.bind_input<1>(x_shards);
  run.bind_output<0>(y_shards);

  double length = 0;
  for (int step = 0; step < 20; ++step) {  // the application's loop
    x_blocks.copy_to(x_shards);
    run.run_bound();
    y_blocks.copy_from(y_shards);
    double square = y.squaredNorm();
    MPI_Allreduce(MPI_IN_PLACE, &square, 1, MPI_DOUBLE, MPI_SUM, comm);  // the application's own communication
    length = std::sqrt(square);
    x = y / length;  // in place: the blocks refer to this memory
  }
  return length;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ranks = 1, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  // If there are several ranks, rank 0 writes. The others compute, on their own communicator.
  const bool computes = ranks == 1 || rank > 0;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, computes ? 1 : MPI_UNDEFINED, rank, &comm);
  constexpr int n = 100;
  double found = computes ? largest_eigenvalue(comm, n) : 0;
  MPI_Bcast(&found, 1, MPI_DOUBLE, ranks - 1, MPI_COMM_WORLD);
  if (rank == 0) std::printf("largest eigenvalue %.6f, exactly %.6f\n", found, 1 / (2 - 2 * std::cos(std::acos(-1.0) / (2 * n + 1))));
  if (computes) MPI_Comm_free(&comm);
  MPI_Finalize();
}
