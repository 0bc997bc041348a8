// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Extents from inputs that the ranks see differently, or that one rank cannot read: an error on every rank.
#include <gshard/exec/program/inferred_extents.hpp>

#include <gshard/exec/program/executable.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/exec/tensor/eigen.hpp>
#include <gshard/cluster/mpi_cluster.hpp>
#include <gshard/core/trace/map.hpp>

#include "../../complaint.hpp"
#include "../../mpi_world.hpp"

#include <doctest/doctest.h>

#include <Eigen/Core>

#include <vector>

namespace gs = gshard;
using mesh = gs::mesh<gs::axis<"x">>;

namespace {

inline constexpr auto twice = [](auto&, auto x) { return x + x; };
using program = gs::program<twice, mesh, gs::in<"A@x,B">>;

/// An array that cannot be read on one rank.
struct torn_array {
  bool is_torn;
  Eigen::MatrixXf whole;
};

}  // namespace

template <>
struct gs::detail::array_reader<torn_array> {
  using value_type = float;
  [[maybe_unused]] static constexpr bool owns = true;
  template <class F>
  static void read(const torn_array& a, F f) {
    if (a.is_torn) throw gs::error("the array is torn");
    gs::detail::read_whole<float>(a.whole, f);
  }
};

TEST_CASE("mpi: an executable has the extents of its inputs") {
  const auto cluster = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  const Eigen::MatrixXf x = Eigen::MatrixXf::Constant(5, 3, 2);
  gs::executable<program> run(cluster, x);
  CHECK(gs::to_global(run(x)) == std::vector<float>(15, 4));
}

TEST_CASE("mpi: inputs with other shapes on one rank, and an input that one rank cannot read") {
  const auto cluster = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  const bool last = mpi_world::rank() == mpi_world::ranks() - 1;
  if (mpi_world::ranks() > 1)
    CHECK(contains(complaint([&] { gs::executable<program>(cluster, Eigen::MatrixXf(5, last ? 4 : 3)); }), "the extent of dim 'B'"));
  CHECK(contains(complaint([&] { gs::executable<program>(cluster, torn_array{last, Eigen::MatrixXf(5, 3)}); }), "the array is torn"));
  CHECK(contains(complaint([&] { gs::executable<program>(cluster, {{'B', last ? 2 : 3}}, Eigen::MatrixXf(5, 3)); }),
                 "executable: input 0 (AB) has extent 3 along B, which is 2 elsewhere"));
}
