// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/cluster/mpi_cluster.hpp>

#include <gshard/eager/reshard.hpp>

#include "../mpi_world.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;
using mpi_world::rank, mpi_world::ranks;

TEST_CASE("mpi: a process holds one shard, and the processes together the tensor") {
  const auto on = gs::on_mpi<gs::mesh<gs::axis<"x">>>(MPI_COMM_WORLD);
  CHECK(on.size() == ranks());
  REQUIRE(on.devices().size() == 1);
  CHECK(on.devices()[0] == rank());

  std::vector<float> whole(5 * 7);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = float(i);
  const auto rows = gs::from_global<float, P<"x", none>>(on, {5, 7}, whole);
  CHECK(rows.local_shards() == 1);
  CHECK(gs::to_global(rows) == whole);
  CHECK(gs::to_global(gs::reshard<P<none, "x">>(rows)) == whole);
}

TEST_CASE("mpi: ranks that share memory") {
  const auto on = gs::on_mpi<gs::mesh<gs::axis<"x">>>(MPI_COMM_WORLD, {}, {.shared_memory = true, .deadlines = {.warn = 20, .fail = 60}});
  CHECK(on.backend().shares_memory());
  std::vector<float> whole(50 * 70);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = float(i);
  const auto rows = gs::from_global<float, P<"x", none>>(on, {50, 70}, whole);
  CHECK(gs::to_global(gs::reshard<P<none, "x">>(rows)) == whole);
}

TEST_CASE("mpi: meshes with several axes, static ones included") {
  const auto on = gs::on_mpi<gs::mesh<gs::axis<"x">, gs::axis<"y">>>(MPI_COMM_WORLD);
  CHECK(on.extent(0) * on.extent(1) == ranks());
  const auto wide = gs::on_mpi<gs::mesh<gs::axis<"x">, gs::axis<"y">>>(MPI_COMM_WORLD, {1, ranks()});
  CHECK(wide.extent(1) == ranks());
  std::vector<double> whole(3 * 4);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = double(i);
  CHECK(gs::to_global(gs::from_global<double, P<"y", "x">>(on, {3, 4}, whole)) == whole);
  using xy = gs::mesh<gs::axis<"x">, gs::axis<"y">>;
  for (const int given : {ranks(), ranks() + 1})
    CHECK_THROWS_WITH_AS(gs::on_mpi<xy>(MPI_COMM_WORLD, {given}),
                         doctest::Contains("the mesh has 2 axes; extents are given for 1, and none for \"y\""), gs::error);
  // Static extents may be omitted: the others are enough.
  using one = gs::mesh<gs::axis<"y", 1>>;
  if (ranks() == 1) CHECK(gs::on_mpi<one>(MPI_COMM_WORLD).size() == 1);
  using some = gs::mesh<gs::axis<"y", 1>, gs::axis<"x">>;
  CHECK(gs::on_mpi<some>(MPI_COMM_WORLD).extent(1) == ranks());
  CHECK(gs::on_mpi<some>(MPI_COMM_WORLD, std::vector{ranks()}).extent(1) == ranks());
  CHECK(gs::on_mpi<some>(MPI_COMM_WORLD, {1, ranks()}).extent(1) == ranks());
  CHECK_THROWS_AS(gs::on_mpi<some>(MPI_COMM_WORLD, {2, ranks()}), gs::error);
  using fixed = gs::mesh<gs::axis<"x", 5>>;
  CHECK_THROWS_WITH_AS(gs::on_mpi<fixed>(MPI_COMM_WORLD), doctest::Contains("devices: axis \"x\" has 5"), gs::error);
}

TEST_CASE("mpi: an order of the axes places the devices, and changes no result") {
  using mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>;
  std::vector<float> whole(12 * 12);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = float(i);
  for (const int node_size : {0, 1, 2})
    for (const std::vector<int>& order : {std::vector{0, 1}, {1, 0}}) {
      const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD, {}, {.node_size = node_size, .axis_order = order});
      const int x = on.extent(0), y = on.extent(1);
      CHECK(on.devices()[0] == (order[0] == 0 ? rank() : rank() % x * y + rank() / x));
      CHECK(gs::to_global(gs::reshard<P<none, "x">>(gs::from_global<float, P<"y", "x">>(on, {12, 12}, whole))) == whole);
    }
  CHECK_THROWS_WITH_AS(gs::on_mpi<mesh>(MPI_COMM_WORLD, {}, {.axis_order = {1, 1}}),
                       doctest::Contains("mpi_options::axis_order: 1, 1 is not an order of the 2 axes of the mesh"), gs::error);
  if (ranks() == 1) return;
  const auto differ = [](std::span<const int>) { return rank() == 0 ? std::vector{0, 1} : std::vector{1, 0}; };
  CHECK_THROWS_WITH_AS(gs::on_mpi<mesh>(MPI_COMM_WORLD, {}, {.choose_axis_order = differ}), doctest::Contains("the order of the axes"),
                       gs::error);
}

TEST_CASE("mpi: the axis with most traffic is placed within nodes") {
  using mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>;
  constexpr auto sums_over_x = [](auto&, auto a) { return gs::annotate<P<none>>(gs::einsum<"AB->B">(a)); };
  using program = gs::program<sums_over_x, mesh, gs::in<"AB", P<"x", none>>>;
  if (ranks() != 4) return;
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD, program::plan, {{'A', 4}, {'B', 10000}}, {2, 2}, {.node_size = 2});
  CHECK(on.devices()[0] == std::vector{0, 2, 1, 3}[std::size_t(rank())]);  // ranks 0 and 1 are along x
  CHECK(on.backend().nodes().node == std::vector{0, 1, 0, 1});
}

TEST_CASE("mpi: wrong extents on one rank are an error of all ranks, also with a plan") {
  using mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>;
  constexpr auto sums_over_x = [](auto&, auto a) { return gs::annotate<P<none>>(gs::einsum<"AB->B">(a)); };
  using program = gs::program<sums_over_x, mesh, gs::in<"AB", P<"x", none>>>;
  const std::vector<int> extents = rank() == ranks() - 1 ? std::vector{ranks()} : std::vector{ranks(), 1};
  const gs::mpi_options soon{.deadlines = {.fail = 20}};
  CHECK_THROWS_WITH_AS(gs::on_mpi<mesh>(MPI_COMM_WORLD, program::plan, {{'A', 4}, {'B', 8}}, extents, soon), doctest::Contains("2 axes"),
                       gs::error);
}

TEST_CASE("mpi: a null communicator is named, with and without extents") {
  CHECK_THROWS_WITH_AS(gs::on_mpi<gs::mesh<gs::axis<"x">>>(MPI_COMM_NULL), "mpi_backend: the communicator is MPI_COMM_NULL", gs::error);
  CHECK_THROWS_WITH_AS(gs::on_mpi<gs::mesh<gs::axis<"x">>>(MPI_COMM_NULL, {1}), "mpi_backend: the communicator is MPI_COMM_NULL",
                       gs::error);
}
