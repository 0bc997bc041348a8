// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/cluster/mpi_type.hpp>

#include <gshard/exec/kernel/element.hpp>

#include "../mpi_world.hpp"

#include <Eigen/Core>
#include <doctest/doctest.h>

#include <complex>

namespace gs = gshard;

TEST_CASE_TEMPLATE("mpi: the datatype of an element type has its size, and moves it", T, float, double, std::int32_t, std::int64_t,
                   std::complex<float>, std::complex<double>, bool, gs::half, gs::bfloat16) {
  int bytes = 0;
  MPI_Type_size(gs::mpi_type<T>(), &bytes);
  CHECK(bytes == int(sizeof(T)));
  T x = mpi_world::rank() == 0 ? T(1) : T(0);
  MPI_Bcast(&x, 1, gs::mpi_type<T>(), 0, MPI_COMM_WORLD);
  CHECK(bool(x == T(1)));
}

TEST_CASE("mpi: complex numbers are added") {
  std::complex<double> z(1, mpi_world::rank());
  MPI_Allreduce(MPI_IN_PLACE, &z, 1, gs::mpi_type<std::complex<double>>(), MPI_SUM, MPI_COMM_WORLD);
  const int n = mpi_world::ranks();
  CHECK(bool(z == std::complex<double>(n, n * (n - 1) / 2)));
}
