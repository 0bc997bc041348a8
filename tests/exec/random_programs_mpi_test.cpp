// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random programs on MPI ranks: the same bits as simulated, also when several of them are interleaved on one cluster. If one rank runs
// another program, every rank throws, and all can continue.
#include "on_ranks.hpp"
#include "random_program_failure.hpp"
#include "random_program_remat.hpp"
#include "random_program_seeds.hpp"
#include "random_program_shrink.hpp"
#include "random_program_text.hpp"
#include "random_program_writer.hpp"

#include <Eigen/Core>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace gs = gshard;
using mpi_world::ranks;
using random_program::recipe;

namespace {

/// A random mesh of all ranks with one to three axes.
std::vector<int> any_mesh(std::mt19937& gen) {
  std::vector<int> mesh;
  int left = ranks();
  for (int more = int(gen() % 3); more > 0; --more) {
    std::vector<int> divisors;
    for (int n = 1; n <= left; ++n)
      if (left % n == 0) divisors.push_back(n);
    mesh.push_back(divisors[gen() % divisors.size()]);
    left /= mesh.back();
  }
  mesh.push_back(left);
  return mesh;
}

/// A program, in every second case with remat scopes.
on_mesh::prepared maybe_with_remat(const recipe& r) {
  on_mesh::prepared p = on_mesh::prepare(r.on, random_program::inputs_of(r), random_program::model_of(r));
  std::mt19937 gen(std::uint32_t(p.program.graph.nodes.size()));
  if (gen() % 2 == 0) random_program::add_remat_scopes(p.program.graph, gen);
  return p;
}

/// The difference from a simulated run on some rank, or nothing; the same text on all ranks.
std::string failure_on_ranks(const recipe& r, bool shared_memory) {
  if (!random_program::analysed(r)) throw on_mesh::ill_formed("its results depend on rounding");
  std::string said;
  try {
    on_ranks::both program(maybe_with_remat(r), shared_memory);
    program.run();
    said = program.difference();
  } catch (const on_mesh::ill_formed&) {
    throw;
  } catch (const std::exception& e) {
    said = e.what();
  }
  return on_ranks::of_all_ranks(said);
}

std::string codes_of(const std::vector<recipe>& programs) {
  std::string text;
  for (const recipe& r : programs) text += random_program::code_of(r);
  return text;
}

}  // namespace

TEST_CASE("mpi: random programs compute the same bits as simulated") {
  const random_program::seed_range seeds = random_program::seeds(60);
  int failures = 0;
  for (std::uint32_t seed = seeds.first; seed < seeds.end() && failures < 5; ++seed) {
    std::mt19937 gen(seed);
    const recipe r = random_program::written(seed, any_mesh(gen));
    const bool shared_memory = gen() % 2 == 0;
    const auto failure = [&](const recipe& smaller) {
      // The mesh has as many devices as there are ranks.
      const auto& mesh = smaller.on.mesh;
      if (std::accumulate(mesh.begin(), mesh.end(), 1, std::multiplies<>()) != ranks()) throw on_mesh::ill_formed("mesh");
      return failure_on_ranks(smaller, shared_memory);
    };
    const std::string said = failure(r);
    if (said.empty()) continue;
    ++failures;
    const recipe small = random_program::shrunk(r, failure);
    FAIL_CHECK("seed " << seed << std::string(shared_memory ? ", shared memory: " : ": ") << said << "\nsmall program: " << failure(small)
                       << "\n"
                       << random_program::code_of(small));
  }
  CHECK((ranks() == 1 || on_ranks::received > 0));
}

TEST_CASE("mpi: random programs interleaved, and in another order on one rank") {
  const random_program::seed_range seeds = random_program::seeds(30);
  int failures = 0;
  for (std::uint32_t seed = seeds.first; seed < seeds.end() && failures < 5; ++seed) {
    std::mt19937 gen(seed);
    const std::vector<int> mesh = any_mesh(gen);
    const bool shared_memory = gen() % 4 == 0;
    std::vector<recipe> recipes;
    std::vector<std::unique_ptr<on_ranks::both>> programs;
    for (std::uint32_t i = 0; i < 2 + seed % 2; ++i) {
      recipes.push_back(random_program::written(seed + 100000 * i, mesh));
      programs.push_back(std::make_unique<on_ranks::both>(maybe_with_remat(recipes.back()), shared_memory));
    }
    std::string said;
    for (int turn = 0; turn < 6 && said.empty(); ++turn) {
      const std::size_t i = gen() % programs.size(), step = 1 + gen() % (programs.size() - 1), other = (i + step) % programs.size();
      const int rank = int(gen() % unsigned(ranks()));
      const bool differs = ranks() > 1 && gen() % 2 == 0;
      bool threw = false;
      try {
        programs[differs && mpi_world::rank() == rank ? other : i]->run();
      } catch (const gs::error& e) {
        threw = true;
        if (!differs) said = e.what();
      }
      if (differs && !threw) said = "no error, though rank " + std::to_string(rank) + " runs another program";
      if (!differs && !threw) said = programs[i]->difference();
      if (!said.empty())
        said = "turn " + std::to_string(turn) + ", program " + std::to_string(i) + (shared_memory ? ", shared memory: " : ": ") + said;
      said = on_ranks::of_all_ranks(said);
    }
    if (said.empty()) continue;
    ++failures;
    FAIL_CHECK("seed " << seed << ": " << said << "\nprograms:\n" << codes_of(recipes));
  }
}
