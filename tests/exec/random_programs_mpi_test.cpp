// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random programs on MPI ranks: the same bits as simulated, several of them interleaved on one cluster; and where one rank runs another
// program than the others, an error on every rank, after which all go on.
#include "../mpi_world.hpp"
#include "random_program_failure.hpp"
#include "random_program_remat.hpp"
#include "random_program_seeds.hpp"
#include "random_program_shrink.hpp"
#include "random_program_text.hpp"
#include "random_program_writer.hpp"

#include <gshard/comm/mpi.hpp>
#include <gshard/kernel/move/cast.hpp>

#include <Eigen/Core>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace gs = gshard;
using mpi_world::ranks;
using random_program::recipe;

namespace {

/// A mesh of all ranks with one to three axes.
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

/// Communicators take long to make: one backend for every mesh, sending messages or sharing memory.
std::shared_ptr<gs::backend> backend_on(const std::vector<int>& mesh, bool shared_memory) {
  static std::map<std::pair<std::vector<int>, bool>, std::shared_ptr<gs::backend>> known;
  std::shared_ptr<gs::backend>& b = known[{mesh, shared_memory}];
  if (!b) b = std::make_shared<gs::mpi_backend>(MPI_COMM_WORLD, mesh, gs::mpi_options{.shared_memory = shared_memory});
  return b;
}

/// A program, in every second case with remat scopes.
on_mesh::prepared maybe_with_remat(const recipe& r) {
  on_mesh::prepared p = on_mesh::prepare(r.on, random_program::inputs_of(r), random_program::model_of(r));
  std::mt19937 gen(std::uint32_t(p.program.graph.nodes.size()));
  if (gen() % 2 == 0) random_program::add_remat_scopes(p.program.graph, gen);
  return p;
}

/// By all programs so far.
std::int64_t received_on_rank = 0;

/// A program, bound to ranks and to as many simulated devices.
class both {
 public:
  both(const recipe& r, bool shared_memory)
      : program_(maybe_with_remat(r)),
        plan_(run_graph::plan(program_.program, program_.setting)),
        real_(plan_, backend_on(r.on.mesh, shared_memory), r.on.dims),
        simulated_(plan_, std::make_shared<gs::simulated>(r.on.mesh), r.on.dims) {}

  void run() { real_.run(program_); }

  /// How the results of the last run differ from simulated ones on this rank, or nothing. A NaN is as any other NaN. A rank receives the
  /// bytes that are counted for its simulated device, which those of the plan are compared with elsewhere (random_program_prices.hpp).
  std::string difference() {
    simulated_.run(program_);
    const auto device = std::size_t(real_.on.devices()[0]);
    const std::int64_t received = real_.engine.received_in_run()[0], counted = simulated_.engine.received_in_run()[device];
    received_on_rank += received;
    if (received != counted)
      return "device " + std::to_string(device) + " receives " + std::to_string(received) + " bytes, simulated " + std::to_string(counted);
    for (std::size_t i = 0; i < plan_.outputs.size(); ++i) {
      const auto here = elements(real_.engine.output(i), 0), there = elements(simulated_.engine.output(i), device);
      if (const std::string said = on_mesh::difference(here, there, on_mesh::same_bits); !said.empty())
        return "device " + std::to_string(device) + ", result " + std::to_string(i) + ": " + said;
    }
    return {};
  }

 private:
  struct bound {
    gs::any_cluster on;
    gs::executor engine;

    bound(const gs::plan_tables& p, std::shared_ptr<gs::backend> b, const gs::dims& dims)
        : on(p.mesh, std::move(b)), engine(p.view(), gs::all_kernels, on, dims, gs::parameter_store(on)) {}
    void run(const on_mesh::prepared& p) {
      for (std::size_t i = 0; i < p.sources.size(); ++i) run_graph::scatter(on, engine.input(i), p.sources[i]);
      engine.run(p.setting.context);
    }
  };

  on_mesh::prepared program_;
  gs::plan_tables plan_;
  bound real_, simulated_;

  static run_graph::array elements(const gs::detail::bound_value& v, std::size_t i) {
    run_graph::array list;
    gs::detail::with_element(v.type, [&]<class T>(T*) {
      for (std::int64_t e = 0; e < v.elements(i); ++e) list.push_back(gs::kernel::detail::converted<double>(v.as<T>(i)[e]));
    });
    return list;
  }
};

/// The first rank's text that is not empty, on all ranks.
std::string of_all_ranks(const std::string& mine) {
  int first = mine.empty() ? ranks() : mpi_world::rank();
  MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == ranks()) return {};
  std::string text = mine;
  int size = int(text.size());
  MPI_Bcast(&size, 1, MPI_INT, first, MPI_COMM_WORLD);
  text.resize(std::size_t(size));
  MPI_Bcast(text.data(), size, MPI_CHAR, first, MPI_COMM_WORLD);
  return "rank " + std::to_string(first) + ": " + text;
}

/// How the program differs from a simulated run on some rank, or nothing; the same on all ranks.
std::string failure_on_ranks(const recipe& r, bool shared_memory) {
  if (!random_program::analysed(r)) throw on_mesh::ill_formed("its results depend on rounding");
  std::string said;
  try {
    both program(r, shared_memory);
    program.run();
    said = program.difference();
  } catch (const on_mesh::ill_formed&) {
    throw;
  } catch (const std::exception& e) {
    said = e.what();
  }
  return of_all_ranks(said);
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
  CHECK((ranks() == 1 || received_on_rank > 0));
}

TEST_CASE("mpi: random programs interleaved, and in another order on one rank") {
  const random_program::seed_range seeds = random_program::seeds(30);
  int failures = 0;
  for (std::uint32_t seed = seeds.first; seed < seeds.end() && failures < 5; ++seed) {
    std::mt19937 gen(seed);
    const std::vector<int> mesh = any_mesh(gen);
    const bool shared_memory = gen() % 4 == 0;
    std::vector<recipe> recipes;
    std::vector<std::unique_ptr<both>> programs;
    for (std::uint32_t i = 0; i < 2 + seed % 2; ++i) {
      recipes.push_back(random_program::written(seed + 100000 * i, mesh));
      programs.push_back(std::make_unique<both>(recipes.back(), shared_memory));
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
      said = of_all_ranks(said);
    }
    if (said.empty()) continue;
    ++failures;
    FAIL_CHECK("seed " << seed << ": " << said << "\nprograms:\n" << codes_of(recipes));
  }
}
