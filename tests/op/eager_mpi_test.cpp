// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/op/eager.hpp>

#include <gshard/op/einsum.hpp>
#include <gshard/op/reshard.hpp>
#include <gshard/tensor/mpi_cluster.hpp>

#include "../complaint.hpp"
#include "../mpi_world.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;

TEST_CASE("mpi: operands that do not fit on one rank are told to all") {
  const auto on = gs::on_mpi<gs::mesh<gs::axis<"x">>>(MPI_COMM_WORLD);
  const bool last = mpi_world::rank() == mpi_world::ranks() - 1;
  const std::vector<float> a(8 * 6, 1.0f), b(6 * 5, 1.0f);
  const auto x = gs::from_global<float, P<none, "x">>(on, {8, 6}, a);
  const auto y = last ? gs::from_global<float, P<"x", none>>(on, {5, 6}, b) : gs::from_global<float, P<"x", none>>(on, {6, 5}, b);
  const std::string said = complaint([&] { gs::einsum<"ab,bc->ac">(x, y); });
  const std::string what = "ab,bc->ac: dim 0 of operand 1 has extent 5, an earlier operand has 6 there";
  CHECK(said == (last ? what : "rank " + std::to_string(mpi_world::ranks() - 1) + " failed: " + what));
  CHECK(gs::to_global(gs::einsum<"ab,cb->ac">(x, x)) == std::vector<float>(8 * 8, 6.0f));
}
