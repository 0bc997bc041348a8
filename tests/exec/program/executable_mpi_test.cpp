// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Errors of one process are reported to all, and no process waits forever.
#include <gshard/exec/program/executable.hpp>

#include <gshard/cluster/mpi_cluster.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/random/dropout.hpp>
#include <gshard/ops/random/random.hpp>
#include <gshard/ops/rows/cross_entropy.hpp>
#include <gshard/train/adam.hpp>

#include "../../complaint.hpp"
#include "../../mpi_world.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mpi_world::rank, mpi_world::ranks;
using mesh = gs::mesh<gs::axis<"x">>;

// Counts the agreements of processes, through MPI's profiling interface: nothing else in a run calls MPI_Allreduce.
namespace rounds {
int made = 0;
}
extern "C" int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  ++rounds::made;
  return PMPI_Allreduce(from, to, count, type, op, comm);
}

namespace {

/// Every process throws: the last one its own error, the others the error of the last one.
void check_last_failed(const std::string& said, const std::string& what) {
  CAPTURE(said);
  const std::string who = "rank " + std::to_string(ranks() - 1) + " failed: ";
  CHECK(contains(said, what));
  CHECK(said.starts_with(who) == (rank() != ranks() - 1));
}

/// Trains an embedding: ids are sharded, the table is not.
inline constexpr auto train = [](auto& m, auto ids, auto labels, auto rate) {
  auto table = m.param("table", "VM", gs::init::normal(1));
  auto out = m.param("out", "MV", gs::init::normal(1));
  auto loss = gs::mean(gs::cross_entropy(gs::einsum<"bm,mv->bv">(gs::gather(table, ids), out), labels));
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using training = gs::program<train, mesh, in<"B", P<"x">, std::int32_t>, in<"B", P<"x">, std::int32_t>, in<"">>;

inline constexpr auto read_only = [](auto& m, auto x) {
  auto w = m.param("w", "AB", P<"x", none>{}, gs::init::normal(1));
  return gs::dropout(gs::einsum<"ab,b->a">(w, x), 0.5);
};
using reading = gs::program<read_only, mesh, in<"B">>;
inline constexpr auto other_layout = [](auto& m, auto x) {
  auto v = m.param("v", "B", gs::init::zeros());
  auto w = m.param("w", "AB", P<none, "x">{}, gs::init::normal(1));
  return gs::einsum<"ab,b->a">(w, x + v);
};
using otherwise = gs::program<other_layout, mesh, in<"B">>;

inline constexpr auto sum_of_rows = [](auto&, auto x) { return gs::annotate<P<none>>(gs::einsum<"ab->b">(x)); };
using summing = gs::program<sum_of_rows, mesh, in<"AB", P<"x", none>>>;

std::vector<float> content(const gs::parameter_store& store, const char* name) {
  const gs::detail::bound_value& v = store.find(name)->value;
  return {v.as<float>(0), v.as<float>(0) + v.elements(0)};
}

}  // namespace

TEST_CASE("mpi: an id or a label out of range on one rank is told to all, and no parameter changes") {
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  gs::parameter_store store(on, 5);
  const auto batch = std::size_t(2 * ranks());
  gs::executable<training> run(on, {{'B', std::int64_t(batch)}, {'V', 7}, {'M', 3}}, store);
  const std::vector<float> rate{0.1f};
  const std::vector<std::int32_t> good(batch, 3);
  std::vector<std::int32_t> bad = good;
  bad.back() = 7;  // on the last rank
  const std::vector<float> before = content(store, "table"), before_out = content(store, "out");
  check_last_failed(complaint([&] { run(bad, good, rate); }), "id 7 at position 1 is outside a table of 7 rows");
  check_last_failed(complaint([&] { run(good, bad, rate); }), "label 7 of row 1");
  CHECK(content(store, "table") == before);
  CHECK(content(store, "out") == before_out);
  CHECK(content(store, "adam.m.table") == std::vector<float>(21, 0.0f));
  CHECK(store.steps() == 0);
  const float first = run(good, good, rate).item();
  CHECK(run(good, good, rate).item() < first);
  CHECK(store.steps() == 2);
}

TEST_CASE("mpi: an input of another size on one rank is told to all") {
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  const auto batch = std::size_t(2 * ranks());
  gs::executable<training> run(on, {{'B', std::int64_t(batch)}, {'V', 7}, {'M', 3}});
  const bool last = rank() == ranks() - 1;
  const std::vector<std::int32_t> good(batch, 3), mine(last ? batch + 1 : batch, 3);
  const std::vector<float> rate{0.1f};
  const std::string elements = " has " + std::to_string(batch + 1) + " elements, its dims make " + std::to_string(batch);
  check_last_failed(complaint([&] { run(mine, good, rate); }), "program: input 0 (B)" + elements);
  check_last_failed(complaint([&] { run(good, mine, rate); }), "program: input 1 (B)" + elements);
  CHECK(run(good, good, rate).item() > 0);
}

TEST_CASE("mpi: a hook that throws on one rank does not stop the others") {
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  gs::executable<reading> run(on, {{'A', 8}, {'B', 3}});
  if (rank() == ranks() - 1) run.executor().hook = [](const gs::node&, bool) { throw std::runtime_error("the hook's"); };
  check_last_failed(complaint([&] { run(std::vector<float>(3, 1.0f)); }), "the hook's");
}

TEST_CASE(
    "mpi: a run agrees once, and once more before it updates parameters and after it has checked them; an operation on tensors once") {
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  const auto count = [](auto f) {
    rounds::made = 0;
    f();
    return rounds::made;
  };
  const auto batch = std::size_t(2 * ranks());
  gs::executable<reading> local(on, {{'A', 8}, {'B', 3}});
  gs::executable<summing> sends(on, {{'A', 8}, {'B', 3}});
  gs::executable<training> updates(on, {{'B', std::int64_t(batch)}, {'V', 7}, {'M', 3}});
  const std::vector<float> x(24, 1.0f), rate{0.1f};
  const std::vector<std::int32_t> ids(batch, 3);
  const auto rows = gs::from_global<float, P<"x", none>>(on, {8, 3}, x);
  for (int again = 0; again < 2; ++again) {
    CHECK(count([&] { local(std::span(x).first(3)); }) == 1);
    CHECK(count([&] { sends(x); }) == 1);
    CHECK(count([&] { updates(ids, ids, rate); }) == 3);
    CHECK(count([&] { gs::to_global(rows); }) == 1);
  }
  // If one rank has a hook, which may fail, all ranks agree once more.
  if (rank() == 0) sends.executor().hook = [](const gs::node&, bool) {};
  CHECK(count([&] { sends(x); }) == 2);
}

TEST_CASE("mpi: ranks that run with another seed or step are told") {
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  gs::executable<reading> run(on, {{'A', 8}, {'B', 3}});
  const std::vector<float> x(3, 1.0f);
  const bool last = rank() == ranks() - 1;
  const auto told = [&](const char* what) { return contains(complaint([&] { run(x); }), what); };
  run.seed = last ? 1 : 0;
  CHECK(told("the processes disagree on the seed of a run: rank") == (ranks() > 1));
  run.seed = 1;
  run.executor().store().set_steps(last ? 1 : 0);
  CHECK(told("the processes disagree on the step of a run: rank") == (ranks() > 1));
  run.executor().store().set_steps(1);
  CHECK(complaint([&] { run(x); }).empty());
}

TEST_CASE("mpi: what one rank finds wrong when a program is bound is told to all, and leaves the store as it was") {
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  const bool last = rank() == ranks() - 1;
  const gs::dims extents{{'A', 8}, {'B', 3}};
  gs::parameter_store store(on, 5);
  check_last_failed(complaint([&] { gs::executable<reading>(on, last ? gs::dims{{'A', 8}} : extents, store); }),
                    "program: dim 'B' is given no extent");
  CHECK(store.entries().empty());
  if (ranks() > 1) {
    const std::string said = complaint([&] { gs::executable<reading>(on, {{'A', last ? 9 : 8}, {'B', 3}}, store); });
    CHECK(contains(said, "the processes disagree on the extent of dim 'A': rank"));
    CHECK(store.entries().empty());
  }
  // Only the last rank already has "w".
  if (last) {
    gs::detail::bound_value w;
    w.extents = {8, 3};
    w.layout = gs::sharding::replicated(2);
    w.places.push_back(gs::kernel::whole(2, {8, 3}));
    w.data.resize(1);
    gs::parameter p;
    p.name = gs::tensor_name("w");
    store.demand(p, w, {});
  }
  check_last_failed(complaint([&] { gs::executable<otherwise>(on, extents, store); }),
                    "parameter \"w\": another program on this store has it in another layout");
  CHECK(store.entries().size() == (last ? 1 : 0));
  if (last) store.forget("w");
  gs::executable<otherwise> run(on, extents, store);
  CHECK(store.entries().size() == 2);
}
