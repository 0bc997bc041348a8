// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads that use clusters of MPI ranks, at MPI's level of thread support.
#include <gshard/exec/process/thread_rule.hpp>

#include <gshard/cluster/mpi.hpp>
#include <gshard/exec/backend/agreement.hpp>

#include "../../complaint.hpp"
#include "../../mpi_world.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace gs = gshard;
using gs::detail::thread_rule;
using mpi_world::rank, mpi_world::ranks;

namespace {
bool is_multiple() { return gs::detail::thread_level() == MPI_THREAD_MULTIPLE; }
const std::string two_threads = "cluster: one thread at a time may use it; two do at the same time";
const std::string not_main =
    "cluster: MPI_Init_thread has given MPI_THREAD_FUNNELED or less, so only the thread that initialized MPI may use it; another one does";

std::string complaint_in_thread(const auto& f) {
  std::string said;
  std::thread([&] { said = complaint(f); }).join();
  return said;
}
void call(gs::backend& on) { on.begin(std::vector<gs::fact>{{"the call", "of a test"}}); }
/// The sum of all ranks' numbers.
int sum_on(gs::backend& on) {
  std::vector<int> all(std::size_t(ranks()), -1);
  const int mine = rank() + 1;
  std::vector<std::span<std::byte>> blocks;
  for (int& number : all) blocks.push_back(std::as_writable_bytes(std::span(&number, 1)));
  const gs::gather_part part{std::as_bytes(std::span(&mine, 1)), blocks};
  call(on);
  on.all_gather(1, {&part, 1});
  int total = 0;
  for (const int number : all) total += number;
  return total;
}
}  // namespace

TEST_CASE("mpi: a thread that may not use a cluster gets the rule; the next call tells all ranks") {
  gs::mpi_backend on(MPI_COMM_WORLD, {ranks()});
  const int expected = ranks() * (ranks() + 1) / 2;
  for (const int breaks : {0, ranks() - 1}) {
    {
      const thread_rule::use in_use = on.enter();
      if (rank() == breaks) CHECK(complaint_in_thread([&] { call(on); }) == (is_multiple() ? two_threads : not_main));
    }
    const std::string said = complaint([&] { call(on); });
    CAPTURE(said);
    if (ranks() > 1) CHECK(contains(said, "an earlier call on the cluster was refused: "));
    if (ranks() > 1) CHECK(contains(said, is_multiple() ? "one thread at a time" : "MPI_THREAD_FUNNELED"));
    if (rank() != breaks) CHECK(said.starts_with("rank " + std::to_string(breaks) + " failed: "));
    CHECK(sum_on(on) == expected);
  }
}

TEST_CASE("mpi: under MPI_THREAD_FUNNELED, another thread makes no cluster, and no call after the main thread") {
  if (is_multiple()) return;
  CHECK(complaint_in_thread([&] { gs::mpi_backend(MPI_COMM_WORLD, {ranks()}); }) == not_main);
  gs::mpi_backend on(MPI_COMM_SELF, {1});
  call(on);
  CHECK(complaint_in_thread([&] { call(on); }) == not_main);
  CHECK(complaint([&] { call(on); }).empty());  // no rank has missed it
}

TEST_CASE("mpi: under MPI_THREAD_MULTIPLE, two threads use two clusters, and one cluster in turn; runs may be started") {
  if (!is_multiple()) return;
  const int expected = ranks() * (ranks() + 1) / 2;
  gs::mpi_backend first(MPI_COMM_WORLD, {ranks()}), second(MPI_COMM_WORLD, {ranks()});
  int wrong = 0, wrong_there = 0;
  std::thread there([&] {
    for (int i = 0; i < 200; ++i) wrong_there += sum_on(second) != expected;
  });
  for (int i = 0; i < 200; ++i) wrong += sum_on(first) != expected;
  there.join();
  CHECK(complaint_in_thread([&] { wrong += sum_on(first) != expected; }).empty());
  for (int i = 0; i < 20; ++i) {
    for (int job = 0; job < 2; ++job)
      first.started().start(
          [&] {
            const thread_rule::use in_use = first.enter();
            wrong_there += sum_on(first) != expected;
          },
          first.any_thread());
    wrong += sum_on(second) != expected;
    wrong += sum_on(first) != expected;
  }
  CHECK(wrong == 0);
  CHECK(wrong_there == 0);
}
