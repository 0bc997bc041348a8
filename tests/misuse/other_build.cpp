// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A rank of a program that was built with another library of matrix products. It multiplies no matrices, so it can define the macros
// differently from its own libraries.
#if defined(GSHARD_HAS_BLAS) && GSHARD_HAS_BLAS
#undef GSHARD_HAS_BLAS
#define GSHARD_HAS_BLAS 0
#else
#undef GSHARD_HAS_BLAS
#define GSHARD_HAS_BLAS 1
#endif

#include <gshard/cluster/mpi_cluster.hpp>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  namespace gs = gshard;
  MPI_Init(&argc, &argv);
  try {
    gs::on_mpi<gs::mesh<gs::axis<"x">>>(MPI_COMM_WORLD, {}, {.deadlines = {.warn = 0.7, .fail = 1.5}});
  } catch (const gs::error& e) {
    std::printf("threw %s\n", e.what());
    std::fflush(stdout);
    std::_Exit(3);
  }
  std::_Exit(0);
}
