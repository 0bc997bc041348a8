// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Compares facts between MPI ranks by one small all_reduce.

#include <gshard/cluster/mpi_communicator.hpp>
#include <gshard/exec/backend/agreement.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// Broadcasts the text of rank `from`; long ones are truncated.
inline void broadcast_text(const communicator& world, int from, std::string& text) {
  int size = int(std::min(text.size(), std::size_t(10000)));
  world.check(MPI_Bcast(&size, 1, MPI_INT, from, world.get()), "MPI_Bcast");
  text.resize(std::size_t(size));
  world.check(MPI_Bcast(text.data(), size, MPI_CHAR, from, world.get()), "MPI_Bcast");
}

/// The texts of all processes, by rank; long ones are truncated.
inline std::vector<std::string> all_texts(const communicator& world, const std::string& mine) {
  const auto n = std::size_t(world.size());
  const int size = int(std::min(mine.size(), std::size_t(1000)));
  std::vector<int> sizes(n), offsets(n);
  world.check(MPI_Allgather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, world.get()), "MPI_Allgather");
  for (std::size_t rank = 1; rank < n; ++rank) offsets[rank] = offsets[rank - 1] + sizes[rank - 1];
  std::string text(std::size_t(offsets.back() + sizes.back()), ' ');
  world.check(MPI_Allgatherv(mine.data(), size, MPI_CHAR, text.data(), sizes.data(), offsets.data(), MPI_CHAR, world.get()),
              "MPI_Allgatherv");
  std::vector<std::string> all;
  for (std::size_t rank = 0; rank < n; ++rank) all.push_back(text.substr(std::size_t(offsets[rank]), std::size_t(sizes[rank])));
  return all;
}

/// Throws on all processes if some have a problem. If every problem is a not_finite_error, every process throws the first in the order of
/// the program.
[[noreturn]] inline void tell_problem(const communicator& world, const process_error& problem) {
  constexpr std::uint64_t none = 0, fails = 1, not_finite = 2;  // plus its position in the program
  const bool is_error = problem.kind == process_error::kind_of::error;
  const std::uint64_t mine = problem.empty() ? none : is_error ? fails : not_finite + problem.place;
  std::vector<std::uint64_t> all(std::size_t(world.size()));
  world.check(MPI_Allgather(&mine, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, world.get()), "MPI_Allgather");
  const auto before = [](std::uint64_t a, std::uint64_t b) { return a - 1 < b - 1; };  // none is the last
  const int first = int(std::min_element(all.begin(), all.end(), before) - all.begin());
  std::string bytes = problem.to_bytes();
  broadcast_text(world, first, bytes);
  if (all[std::size_t(first)] == none) throw error("an agreement of the processes got messages of another call");
  const process_error first_problem = process_error::from_bytes(bytes);
  if (all[std::size_t(first)] != fails) first_problem.fail();
  if (mine != none) throw error(problem.text);
  std::string others;
  int n_others = 0;
  for (int rank = 0; rank < world.size(); ++rank)
    if (rank != first && all[std::size_t(rank)] != none && ++n_others <= 8) others += (others.empty() ? "" : ", ") + std::to_string(rank);
  if (n_others > 8) others += " and " + std::to_string(n_others - 8) + " more";
  throw error("rank " + std::to_string(first) + " failed" + (others.empty() ? "" : ", and so did " + others) + ": " + first_problem.text);
}

/// The facts of a call. If the function for them fails, the error becomes the fact, so that the other processes do not hang.
inline std::vector<fact> facts_of(const collective_call& call) {
  std::vector<fact> facts;
  const process_error problem = problem_of([&] { facts = call.facts(); });
  if (!problem.empty()) facts = {{"the call", "one that cannot be described: " + problem.text}};
  if (facts.empty()) facts.push_back({"the call", "the rest of a call"});
  return facts;
}

/// Throws on all processes if their calls differ. The error names the first fact that differs.
[[noreturn]] inline void tell_difference(const communicator& world, const collective_call& mine) {
  std::vector<fact> facts = facts_of(mine);
  std::uint64_t count = facts.size();
  world.check(MPI_Allreduce(MPI_IN_PLACE, &count, 1, MPI_UINT64_T, MPI_MAX, world.get()), "MPI_Allreduce");
  facts.resize(count, {"nothing more", ""});
  facts.push_back({"the number of the call", std::to_string(mine.number)});
  std::vector<std::uint64_t> most;  // the maximum of every fact's hash, and of the complement of the hash
  for (const fact& f : facts) {
    const std::uint64_t hash = hash_of({f});
    most.push_back(hash);
    most.push_back(~hash);
  }
  world.check(MPI_Allreduce(MPI_IN_PLACE, most.data(), int(most.size()), MPI_UINT64_T, MPI_MAX, world.get()), "MPI_Allreduce");
  std::size_t first = 0;
  while (first < facts.size() && most[2 * first] == ~most[2 * first + 1]) ++first;
  facts.push_back({"numbers that have the same text", "other bits"});
  const std::vector<std::string> whats = all_texts(world, facts[first].what), values = all_texts(world, facts[first].value),
                                 places = all_texts(world, facts[first].place);
  std::vector<fact> by_rank;
  for (std::size_t rank = 0; rank < whats.size(); ++rank) by_rank.push_back({whats[rank], values[rank], places[rank]});
  throw error(disagreement(facts[0], mine.number, first == 0, by_rank));
}

/// @see backend::agree
inline bool agree(const communicator& world, const collective_call& call, const process_error& problem = {}, bool flag = false) {
  const std::uint64_t failed = problem.empty() ? 0 : 1;
  const std::uint64_t hash = call.hash() ^ (call.number * 0x9e3779b97f4a7c15u);
  const std::uint64_t mine[] = {failed, hash, ~hash, flag ? 1u : 0u};
  std::uint64_t most[4];
  world.check(MPI_Allreduce(mine, most, 4, MPI_UINT64_T, MPI_MAX, world.get()), "MPI_Allreduce");
  if (most[0] != 0) tell_problem(world, problem);
  if (most[1] != ~most[2]) tell_difference(world, call);  // the maximum and the minimum of the hashes differ
  return most[3] != 0;
}

}}}  // namespace gshard::v0::detail
