// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plans at compile time, runs on MPI ranks, and loads their checkpoint on as many simulated devices. The argument is the number of ranks.
#include <gshard/gshard.hpp>
#include <gshard/io.hpp>

#include <mpi.h>

#include <cstdlib>
#include <iostream>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;

inline constexpr auto dense = [](auto& m, auto x) {
  return gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", P<"x", none>{}, gs::init::normal(1)));
};
using mesh = gs::mesh<gs::axis<"x">>;
using program = gs::program<dense, mesh, gs::in<"BM", P<none, "x">>>;
static_assert(program::plan.count(gs::op::all_reduce) == 1);
static_assert(GSHARD_HAS_MPI, "vcpkg.json requests the feature mpi");

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  bool right = false;
  {  // everything that uses the cluster ends before MPI does
    const gs::dims sizes{{'B', 3}, {'M', 5}, {'H', 4}};
    const std::vector<float> x(3 * 5, 1.0f);
    gs::parameter_store ranks(gs::on_mpi<mesh>(MPI_COMM_WORLD), 1);       // 1 and 2: seeds of initial values
    const gs::parameter_store simulated(gs::simulate<mesh>(ranks.cluster().size()), 2);
    gs::executable<program> on_ranks(ranks.cluster(), sizes, ranks), on_simulated(simulated.cluster(), sizes, simulated);
    const std::vector<float> expected = gs::to_global(on_ranks(x));
    const bool differed = gs::to_global(on_simulated(x)) != expected;
    gs::save(ranks, "consumer.safetensors");
    gs::load(simulated, "consumer.safetensors");
    right = differed && gs::to_global(on_simulated(x)) == expected && ranks.cluster().size() == (argc > 1 ? std::atoi(argv[1]) : 1);
    if (ranks.cluster().backend().leader())
      std::cout << ranks.cluster().size() << " ranks, gshard " << gs::version << ": " << (right ? "the same bits" : "WRONG") << '\n';
  }
  MPI_Finalize();
  return right ? 0 : 1;
}
