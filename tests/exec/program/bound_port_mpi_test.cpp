// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs on memory of the ranks, and runs concurrent with the ranks' own work, with and without MPI_THREAD_MULTIPLE.
#include "../../complaint.hpp"
#include "../../mpi_world.hpp"

#include <gshard/exec/tensor/eigen.hpp>
#include <gshard/gshard.hpp>

#include <doctest/doctest.h>

#include <numeric>
#include <span>
#include <vector>

namespace gs = gshard;
using gs::none;
using gs::P;
using mpi_world::rank;
using mpi_world::ranks;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;
constexpr auto row_sums = [](auto&, auto a) { return gs::einsum<"AB->A">(a); };  // columns are sharded: an all-reduce
using sums = gs::program<row_sums, mesh, gs::in<"AB", P<none, "x">>>;
constexpr auto turned = [](auto&, auto a) { return gs::annotate<P<"x", none>>(a); };
using turn = gs::program<turned, mesh, gs::in<"AB", P<none, "x">>>;
constexpr auto applied = [](auto&, auto a, auto v) { return gs::einsum<"AB,B->A">(a, v); };
using apply = gs::program<applied, mesh, gs::in<"AB", P<"x", none>>, gs::in<"B", P<none>>>;

/// The columns of a matrix with 6 rows on a rank.
struct columns {
  std::int64_t width = 0;
  std::vector<float> memory;

  explicit columns(const gs::any_cluster& on) {
    const gs::tensor<float, P<none, "x">> whole(on, {6, 7});
    const auto at = whole.local_shard(0);
    width = at.extent(1);
    for (std::int64_t i = 0; i < 6; ++i)
      for (std::int64_t j = 0; j < width; ++j) memory.push_back(float(i * 7 + at.offset(1) + j));
  }
};

}  // namespace

TEST_CASE("mpi: inputs and outputs in memory of the ranks") {
  for (const bool shared : {false, true}) {
    const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD, {}, {.shared_memory = shared});
    columns mine(on);
    std::vector<float> y(6);
    gs::executable<sums> run(on, {{'A', 6}, {'B', 7}});
    run.bind_input<0>(mine.memory);
    run.bind_output<0>(y);
    for (int step = 0; step < 3; ++step) {
      run.run_bound();
      for (int i = 0; i < 6; ++i) CHECK(y[std::size_t(i)] == float(49 * i + 21));
    }
    gs::executable<turn> rows(on, {{'A', 6}, {'B', 7}});
    gs::tensor<float, P<"x", none>> out(on, {6, 7});
    rows.bind_input<0>(mine.memory);
    rows.bind_output<0>(out);
    rows.run_bound();
    const auto shard = out.local_shard(0);
    for (std::int64_t i = 0; i < shard.size(); ++i) CHECK(shard.data[i] == float(shard.offset(0) * 7 + i));
  }
}

TEST_CASE("mpi: ranks that bind other memory are told so") {
  if (ranks() == 1) return;
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  columns mine(on);
  std::vector<float> y(6);
  gs::executable<sums> run(on, {{'A', 6}, {'B', 7}});
  run.bind_input<0>(mine.memory);
  if (rank() == 0) run.bind_output<0>(y);
  CHECK(contains(complaint([&] { run.run_bound(); }), "the processes disagree"));
  if (rank() != 0) run.bind_output<0>(y);
  run.run_bound();
  CHECK(y[1] == 49 + 21);
  if (rank() == 0) run.bind_output<0>(y);  // this rank binds again, the others run
  CHECK(contains(complaint([&] { run.run_bound(); }), "the processes make different calls"));
  if (rank() != 0) run.bind_output<0>(y);
  run.run_bound();
}

TEST_CASE("mpi: a matrix that is contiguous on some ranks only; a replicated array must be equal on all") {
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  gs::executable<apply> run(on, {{'A', 7}, {'B', 3}});
  const auto rows = run.executor().input(0).extent(0, 0);  // the last of three ranks has one row
  const Eigen::MatrixXf a = Eigen::MatrixXf::Constant(rows, 3, 2);
  Eigen::VectorXf v = Eigen::VectorXf::Constant(3, 5), y(rows);
  run.bind_input<0>(a);
  run.bind_input<1>(v);
  run.bind_output<0>(y);
  run.run_bound();
  CHECK((y.array() == 30).all());
  if (ranks() == 1) return;
  v[1] = float(rank());
  for (const bool starts : {false, true})
    CHECK(contains(complaint([&] {
                     if (starts) run.start_bound(), run.wait();
                     else run.run_bound();
                   }),
                   "the processes disagree on element 1 of input 1: rank 0 has 0"));
  v[1] = 5;
  run.run_bound();
}

TEST_CASE("mpi: a rank that starts a run twice, or runs before it waits, is told so with all others") {
  if (ranks() == 1) return;
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  columns mine(on);
  std::vector<float> y(6);
  gs::executable<sums> run(on, {{'A', 6}, {'B', 7}});
  run.bind_input<0>(mine.memory);
  run.bind_output<0>(y);
  for (const bool starts : {false, true}) {
    run.start_bound();
    if (rank() != 0) run.wait();
    CHECK(contains(complaint([&] {
                     if (starts) run.start_bound();
                     else run.run_bound();
                     if (starts) run.wait();
                   }),
                   "program: a run of it was started; call wait() first"));
    if (rank() == 0) run.wait();
    CHECK(y[1] == 49 + 21);
  }
}

TEST_CASE("mpi: started runs, together with the ranks' own messages") {
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  columns mine(on);
  std::vector<float> y(6);
  gs::executable<sums> run(on, {{'A', 6}, {'B', 7}});
  gs::executable<turn> rows(on, {{'A', 6}, {'B', 7}});
  gs::tensor<float, P<"x", none>> out(on, {6, 7});
  run.bind_input<0>(mine.memory);
  run.bind_output<0>(y);
  rows.bind_input<0>(mine.memory);
  rows.bind_output<0>(out);
  for (int step = 0; step < 50; ++step) {
    std::fill(y.begin(), y.end(), -1.0f);
    run.start_bound();
    rows.start_bound();
    int one = 1, all = 0;
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);  // communication of the application
    CHECK(all == ranks());
    if (step % 3 == 0) CHECK(gs::to_global(out)[5] == 5);  // a later call on the cluster
    if (step % 2 == 0) {
      rows.wait();
      run.wait();
    } else {
      run.wait();
      rows.wait();
    }
    CHECK(y[2] == 98 + 21);
  }
  gs::executable<sums> unbound(on, {{'A', 6}, {'B', 7}});
  const auto start_and_wait = [&] {
    unbound.start_bound();
    unbound.wait();
  };
  CHECK(complaint(start_and_wait) == "program: input 0 is bound to no memory; bind_input<0> binds it");
  if (rank() == 0) unbound.bind_input<0>(mine.memory);
  CHECK((complaint(start_and_wait) == "") == (ranks() == 1));
}
