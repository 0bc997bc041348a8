// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ranks that keep others waiting are named. The run continues when they arrive.
#include <gshard/cluster/mpi.hpp>

#include "../complaint.hpp"
#include "../mpi_world.hpp"
#include "../exec/backend/failing_threads.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace gs = gshard;
using mpi_world::rank, mpi_world::ranks;

TEST_CASE("mpi: a rank that is late is named by the first rank that waits, and the call succeeds when it comes") {
  if (ranks() == 1) return;
  std::mutex mutex;
  std::string reports;
  const gs::datagram_watch::reaction before = gs::datagram_watch::reactions();
  gs::datagram_watch::reactions().report = [&](const std::string& text) {
    const std::scoped_lock lock(mutex);
    reports += text;
  };
  {
    const int late = ranks() - 1;
    gs::mpi_backend b(MPI_COMM_WORLD, {ranks()}, {.deadlines = {.warn = 0.5, .fail = 0}});
    b.begin(std::vector<gs::fact>{{"the call", "the first"}});
    if (rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    CHECK_FALSE(b.begin(std::vector<gs::fact>{{"the call", "the second"}}));
    MPI_Barrier(MPI_COMM_WORLD);  // all reports have been written
    const std::scoped_lock lock(mutex);
    CAPTURE(reports);
    if (rank() == 0) {
      CHECK(reports.find("gshard: rank 0 waits for ") == 0);
      CHECK(reports.find(" in an agreement of all ranks, collective call 2\n") != reports.npos);
      CHECK(reports.find("rank " + std::to_string(late) + " is outside of gshard's communication for ") != reports.npos);
    }
    if (rank() == late) CHECK(reports.empty());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  gs::datagram_watch::reactions() = before;
}

TEST_CASE("mpi: ranks with other deadlines are told") {
  if (ranks() == 1) return;
  CHECK_THROWS_AS(gs::mpi_backend(MPI_COMM_WORLD, {ranks()}, {.deadlines = {.warn = rank() == 0 ? 30.0 : 60.0}}), gs::error);
}

TEST_CASE("mpi: a rank that cannot make its watch's thread is told to all, which do not wait for it") {
  if (ranks() == 1) return;
  std::string text;
  {
    std::optional<failing_threads> now;
    if (rank() == ranks() - 1) now.emplace();
    if (now && !now->fail()) return;
    text = complaint([] { gs::mpi_backend b(MPI_COMM_WORLD, {ranks()}); });
  }
  CHECK(contains(text, "no thread can be made: "));
  gs::mpi_backend b(MPI_COMM_WORLD, {ranks()});
  CHECK_FALSE(b.begin(std::vector<gs::fact>{{"the call", "after it"}}));
}

TEST_CASE("mpi: deadlines that are negative or no numbers are refused; infinite ones are not") {
  const double infinite = std::numeric_limits<double>::infinity();
  for (const double wrong : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK(contains(complaint([&] { gs::mpi_backend b(MPI_COMM_WORLD, {ranks()}, {.deadlines = {.warn = wrong}}); }),
                   "mpi_backend: deadlines of "));
    CHECK(contains(complaint([&] { gs::mpi_backend b(MPI_COMM_WORLD, {ranks()}, {.deadlines = {.fail = wrong}}); }), "must be at least 0"));
  }
  gs::mpi_backend b(MPI_COMM_WORLD, {ranks()}, {.deadlines = {.warn = infinite, .fail = infinite}});
  CHECK_FALSE(b.begin(std::vector<gs::fact>{{"the call", "a call"}}));
}
