// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Run-time programs on MPI ranks: the bits of simulated devices, and ranks that disagree.
#include <gshard/runtime/runtime_executable.hpp>

#include <gshard/gshard.hpp>

#include "../complaint.hpp"
#include "../mpi_world.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace gs = gshard;

namespace {
inline constexpr auto dense = [](auto& m, auto x) {
  return gs::relu(gs::einsum<"BM,MH->BH">(x, m.param("w", "M@x,H", gs::init::fan_in("M"))));
};
std::vector<float> result_on(const gs::any_cluster& cluster, bool again) {
  const gs::dims sizes{{'B', 3}, {'M', 7}, {'H', 4}};
  const gs::runtime_program program(dense, "x", {"B,M@x"});
  gs::runtime_executable run(again ? program.at(cluster, sizes) : program, cluster, sizes);
  return gs::to_global<float>(run(std::vector<float>(21, 0.3f)).front());
}
}  // namespace

TEST_CASE("mpi: a run-time program has the bits of simulated devices") {
  const auto cluster = gs::on_mpi(MPI_COMM_WORLD, "x");
  for (const bool again : {false, true}) CHECK(result_on(cluster, again) == result_on(gs::simulate("x", mpi_world::ranks()), again));
}

TEST_CASE("mpi: ranks with another program, mesh or input") {
  if (mpi_world::ranks() == 1) return;
  const bool last = mpi_world::rank() == mpi_world::ranks() - 1;
  CHECK(contains(complaint([&] { gs::on_mpi(MPI_COMM_WORLD, last ? "y" : "x"); }), "the axes of the mesh"));
  const auto cluster = gs::on_mpi(MPI_COMM_WORLD, "x");
  const auto made = [&](int layers) {
    const auto model = [layers](gs::parameter_scope, gs::symbol x) {
      for (int i = 0; i < layers; ++i) x = gs::relu(x);
      return x;
    };
    return gs::runtime_executable(gs::runtime_program(model, "x", {"B@x,"}), cluster, {{'B', 4}});
  };
  CHECK(complaint([&] { made(last ? 2 : 1); }) != "");
  gs::runtime_executable run = made(1);
  const std::vector<double> wrong(4);
  const std::vector<float> right(4, 1);
  CHECK(contains(complaint([&] { last ? run(wrong) : run(right); }), "has elements of type float, not double"));
  CHECK(gs::to_global<float>(run(right).front()) == right);
}
