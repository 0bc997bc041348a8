// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plans a program, runs it on simulated devices, and on the ranks of mpiexec with the argument `ranks`.
#include <gshard/gshard.hpp>
#if defined(TEST_BOOST_MPI)
#include <gshard/cluster/boost_mpi.hpp>
#endif
#if defined(TEST_XTENSOR)
#include <gshard/exec/tensor/xtensor.hpp>
#endif
#if defined(TEST_IO)
#include <gshard/io.hpp>
#endif
#include <cstdio>
#include <vector>

namespace gs = gshard;
using gs::none;
using gs::P;

static_assert(GSHARD_HAS_MPI == EXPECTED_MPI, "the package has MPI if it was asked for");
#if defined(TEST_COMPILED)
static_assert(GSHARD_COMPILED_KERNELS == 1, "gshard::compiled says that the library has the kernels");
#endif

inline constexpr auto dense = [](auto& m, auto x) {
  return gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", P<"x", none>{}, gs::init::constant(1)));
};
using mesh = gs::mesh<gs::axis<"x">>;
using program = gs::program<dense, mesh, gs::in<"BM", P<none, "x">>>;
static_assert(program::plan.count(gs::op::all_reduce) == 1);

// The compiler runs more steps than its default limit allows: so the package's flags have arrived.
constexpr long steps = [] {
  long n = 0;
  for (long i = 0; i < 600'000; ++i) n += i & 1;
  return n;
}();
static_assert(steps == 300'000);

template <class Cluster>
bool runs_on(const Cluster& devices) {
  gs::executable<program> run(devices, {{'B', 3}, {'M', 5}, {'H', 4}});
  const std::vector<float> x(3 * 5, 1.0f);
  const auto y = run(x);
#if defined(TEST_XTENSOR)
  if (gs::as_xtensor(y.local_shard(0))(0, 0) != 5.0f) return false;
#endif
#if defined(TEST_IO)
  gs::save(gs::parameter_store(devices, 1), "test_package.safetensors");
#endif
  for (const float v : gs::to_global(y))
    if (v != 5) return false;
  return true;
}

int main(int argc, char** argv) {
  bool right = true;
  if (argc == 1) {
    right = runs_on(gs::simulate<mesh>(2));
  } else {
#if EXPECTED_MPI
    MPI_Init(&argc, &argv);
#if defined(TEST_BOOST_MPI)
    right = runs_on(gs::on_mpi<mesh>(boost::mpi::communicator()));
#else
    right = runs_on(gs::on_mpi<mesh>(MPI_COMM_WORLD));
#endif
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    right = right && ranks == 2;
    MPI_Finalize();
#else
    right = false;
#endif
  }
  std::puts(right ? "gshard: planned and run" : "gshard: wrong result");
  return right ? 0 : 1;
}
