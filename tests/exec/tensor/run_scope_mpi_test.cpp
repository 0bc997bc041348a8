// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ranks that do not wait are informed about a rank that left its run. tests/misuse has ranks that wait.
#include <gshard/exec/tensor/run_scope.hpp>

#include <gshard/cluster/mpi_cluster.hpp>
#include <gshard/exec/program/parameters.hpp>

#include "../../complaint.hpp"
#include "../../mpi_world.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <stdexcept>
#include <string>

namespace gs = gshard;
using mpi_world::rank, mpi_world::ranks;

namespace {
using mesh = gs::mesh<gs::axis<"x">>;
bool last() { return rank() == ranks() - 1; }
void call(const gs::any_cluster& on) { on.backend().begin(std::vector<gs::fact>{{"the call", "of a test"}}); }
std::string failed(const std::string& text) {
  return (last() ? "this rank" : "rank " + std::to_string(ranks() - 1)) + " failed: " + text;
}
}  // namespace

TEST_CASE("mpi: after one rank has left its run by an exception, the others throw its text in their next call") {
  for (const bool by_function : {false, true}) {
    const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
    std::optional<gs::run_scope> scope;
    if (!last() || ranks() == 1) scope.emplace(on);
    call(on);
    if (last()) {
      const auto fails = [&] {
        if (by_function) gs::run_scope(on).run([] { throw std::runtime_error("no disk"); });
        const gs::run_scope mine(on);
        throw std::runtime_error("no disk");
      };
      CHECK_THROWS_AS(fails(), std::runtime_error);
    }
    MPI_Barrier(MPI_COMM_WORLD);  // it returned after all had confirmed
    if (ranks() == 1) call(on);
    else if (!last()) CHECK(complaint([&] { call(on); }) == failed(by_function ? "no disk" : "it left its run by an exception"));
    scope.reset();
    MPI_Barrier(MPI_COMM_WORLD);
    call(on);  // calls that some ranks refused are not counted
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("mpi: a failure told by hand also ends the calls of its own rank, until the scope ends") {
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  {
    gs::run_scope scope(on);
    call(on);
    if (last()) scope.fail("bad batch");
    MPI_Barrier(MPI_COMM_WORLD);
    if (ranks() > 1) CHECK(complaint([&] { call(on); }) == failed("bad batch"));
    if (ranks() > 1) CHECK(complaint([&] { call(on); }) == failed("bad batch"));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  call(on);
}

TEST_CASE("mpi: an exception that all ranks throw leaves the cluster as it is") {
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  for (int i = 0; i < 5; ++i) {
    const auto fails = [&] {
      gs::run_scope(on).run([&] {
        call(on);
        on.backend().begin(std::vector<gs::fact>{{"the call", "fails"}}, last() ? "no disk" : "");
      });
    };
    CHECK(complaint(fails).ends_with("no disk"));
    call(on);
  }
}
