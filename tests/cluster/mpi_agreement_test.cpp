// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/cluster/mpi_agreement.hpp>

#include <gshard/cluster/mpi.hpp>

#include "../complaint.hpp"
#include "../mpi_world.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace gs = gshard;
using facts = std::vector<gs::fact>;
using mpi_world::rank, mpi_world::ranks;

namespace {
bool last() { return rank() == ranks() - 1; }
facts saving(const std::string& step) { return {{"the call", "save"}, {"the step", step}}; }
/// "rank 0 has" for a group of the first n ranks.
std::string first_have(int n) {
  return n == 1 ? "rank 0 has " : n == 2 ? "ranks 0 and 1 have " : "ranks 0 to " + std::to_string(n - 1) + " have ";
}
}  // namespace

TEST_CASE("mpi: calls that are equal but for their places begin") {
  gs::mpi_backend b(MPI_COMM_WORLD, {ranks()});
  CHECK(b.processes() == ranks());
  CHECK_FALSE(b.begin(saving("3")));
  CHECK_FALSE(b.begin(facts{{"the call", "load", "line " + std::to_string(rank())}}));
  CHECK(b.begin(saving("3"), "", last()));  // the flag of one rank reaches all
  CHECK_FALSE(b.agree({}));
  CHECK(b.calls() == 3);
}

TEST_CASE("mpi: what differs is told to all in one sentence, and the backend can be used again") {
  if (ranks() == 1) return;
  gs::mpi_backend b(MPI_COMM_WORLD, {ranks()});
  const std::string end = ", rank " + std::to_string(ranks() - 1) + " has ";
  CHECK(complaint([&] { b.begin(saving(last() ? "8" : "7")); }) ==
        "call 1 on their cluster: save: the processes disagree on the step: " + first_have(ranks() - 1) + "7" + end + "8");
  CHECK(complaint([&] { b.begin(last() ? facts{{"the call", "load"}} : saving("7")); }) ==
        "call 2 on their cluster: the processes make different calls: " + first_have(ranks() - 1) + "save" + end + "load");
  // One rank has more facts, or other ones.
  CHECK(complaint([&] { b.begin(last() ? facts{{"the call", "save"}} : saving("7")); }) ==
        "call 3 on their cluster: save: the processes disagree: " + first_have(ranks() - 1) + "the step 7" + end + "nothing more ");
  // Each rank has another fact.
  CHECK(contains(complaint([&] { b.begin(saving(std::to_string(rank()))); }), "rank 0 has 0, rank 1 has 1"));
  // Facts without a difference, and a function of facts that throws.
  const auto same = [] { return saving("7"); };
  CHECK(contains(complaint([&] { b.begin({std::uint64_t(last() ? 1 : 2), same}); }),
                 "the processes disagree on numbers that have the same text"));
  const auto throws = []() -> facts {
    if (last()) throw std::runtime_error("no memory");
    return saving("7");
  };
  CHECK(contains(complaint([&] { b.begin({std::uint64_t(last() ? 1 : 2), throws}); }), "one that cannot be described: no memory"));
  CHECK(contains(complaint([&] { b.agree(last() ? gs::collective_call() : gs::collective_call(5, same)); }), " has the rest of a call"));
  CHECK(complaint([&] { b.begin(saving("7")); }).empty());
  CHECK(b.calls() == 7);
}

TEST_CASE("mpi: calls that are equal but for their numbers are told: one process is a call behind") {
  if (ranks() == 1) return;
  const gs::detail::communicator world = gs::detail::duplicate(MPI_COMM_WORLD);
  const facts same = saving("7");
  gs::collective_call mine(same);
  mine.number = last() ? 3 : 2;
  const std::string others = first_have(ranks() - 1) + "2, rank " + std::to_string(ranks() - 1) + " has 3";
  CHECK(complaint([&] { gs::detail::agree(world, mine); }) == "call " + std::to_string(mine.number) +
        " on their cluster: save: the processes disagree on the number of the call: " + others);
  mine.number = 4;
  CHECK(complaint([&] { gs::detail::agree(world, mine); }).empty());
}

TEST_CASE("mpi: long values are shortened, and many facts are searched") {
  if (ranks() == 1) return;
  gs::mpi_backend b(MPI_COMM_WORLD, {ranks()});
  facts many = saving(std::string(5000, 'x'));
  for (int i = 0; i < 10000; ++i) many.push_back({"row " + std::to_string(i), std::to_string(i)});
  std::mt19937 random(1);
  for (int turn = 0; turn < 20; ++turn) {
    const auto row = std::size_t(random() % many.size());
    const int culprit = int(random() % unsigned(ranks()));
    facts mine = many;
    if (rank() == culprit) mine[row].value += "!";
    const std::string said = complaint([&] { b.begin(mine); });
    CHECK(contains(said, row == 0 ? "make different calls" : row == 1 ? "disagree on the step" : "disagree on " + mine[row].what + ":"));
    CHECK(said.size() < 5000);
  }
}

TEST_CASE("mpi: processes of two versions of the library are told so") {
  if (ranks() == 1) return;
  const gs::detail::communicator world = gs::detail::duplicate(MPI_COMM_WORLD);
  const std::vector<int> extents{ranks()};
  const facts mine = gs::detail::backend_facts(extents, {}, {}, last() ? "9.9.9" : gs::version);
  const std::string said = complaint([&] { gs::detail::agree(world, mine); });
  CHECK(said == "making a cluster of MPI processes: the processes disagree on the version of gshard: " + first_have(ranks() - 1) +
                    std::string(gs::version) + ", rank " + std::to_string(ranks() - 1) + " has 9.9.9");
}

TEST_CASE("mpi: a problem of some ranks is told to all") {
  const int n = ranks();
  gs::mpi_backend b(MPI_COMM_WORLD, {n});
  const std::string mine = "id " + std::to_string(rank()) + " is bad";
  const std::string one = complaint([&] { b.begin(saving("7"), last() ? mine : ""); });
  CHECK(one == (last() ? mine : "rank " + std::to_string(n - 1) + " failed: id " + std::to_string(n - 1) + " is bad"));
  // A problem is reported before a difference, which it may have caused.
  CHECK(complaint([&] { b.begin(saving(std::to_string(rank())), mine); }) == mine);
  if (n > 2) {
    const std::string some = complaint([&] { b.agree({}, rank() > 0 ? mine : ""); });
    CHECK(some == (rank() > 0 ? mine
                   : n == 3   ? "rank 1 failed, and so did 2: id 1 is bad"
                              : "rank 1 failed, and so did 2, 3: id 1 is bad"));
  }
  CHECK(complaint([&] { b.begin(saving("7")); }).empty());
}

TEST_CASE("mpi: numbers that are not finite are one error of one type on all ranks") {
  const int n = ranks();
  gs::mpi_backend b(MPI_COMM_WORLD, {n});
  const auto thrown = [&](const gs::process_error& problem) -> std::string {
    try {
      b.agree({}, problem);
    } catch (const gs::not_finite_error& e) {
      return "step " + std::to_string(e.step) + ": " + e.what();
    } catch (const gs::error& e) {
      return e.what();
    }
    return "";
  };
  const auto at_place = [](std::size_t place) {
    return gs::process_error::not_finite("nan on rank " + std::to_string(rank()), 5, place);
  };
  CHECK(thrown(last() ? at_place(3) : gs::process_error()) == "step 5: nan on rank " + std::to_string(n - 1));
  CHECK(thrown(at_place(3)) == "step 5: nan on rank 0");
  CHECK(thrown(at_place(std::size_t(100 - rank()))) == "step 5: nan on rank " + std::to_string(n - 1));  // the first one in the program
  if (n > 1) {  // an ordinary error comes first, and all ranks throw its type
    const std::string said = thrown(last() ? gs::process_error("no memory") : at_place(3));
    CHECK(said == (last() ? "no memory" : "nan on rank " + std::to_string(rank())));
  }
  CHECK(thrown("") == "");
}

TEST_CASE("mpi: a problem that no agreement reported is reported in the next call") {
  gs::mpi_backend b(MPI_COMM_WORLD, {ranks()});
  if (last()) b.tell_next("the run before failed");
  const std::string said = complaint([&] { b.begin(saving("7")); });
  CHECK(contains(said, ranks() == 1 ? "" : "the run before failed"));
  CHECK(said.empty() == (ranks() == 1));
  CHECK(complaint([&] { b.begin(saving("7")); }).empty());
}

TEST_CASE("mpi: if no process has the problem that an agreement found, its messages were of another call: no error is without a text") {
  const gs::detail::communicator world = gs::detail::duplicate(MPI_COMM_WORLD);
  CHECK(complaint([&] { gs::detail::tell_problem(world, ""); }) == "an agreement of the processes got messages of another call");
}
