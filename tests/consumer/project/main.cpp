// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A user's program. With gshard::plan alone it plans. With gshard::gshard it also runs the plan, or only makes a tensor, which compiles
// faster. With the other targets it uses their libraries.
#if defined(MPI_FOR_C)
#include <mpi.h>
#endif
#if defined(PLAN_ONLY)
#include <gshard/plan.hpp>
#else
#include <gshard/gshard.hpp>
#endif
#if defined(PARTS)
#include <gshard/io.hpp>
#if defined(WITH_HDF5)
#include <gshard/io/hdf5.hpp>
#endif
#include <gshard/exec/tensor/xtensor.hpp>
#if EXPECTED_MPI
#include <gshard/cluster/boost_mpi.hpp>

#include <boost/mpi/environment.hpp>
#endif
#endif

#if !defined(PLAN_ONLY)
static_assert(GSHARD_HAS_MPI == EXPECTED_MPI);
#if defined(EXPECTED_KERNELS)
static_assert(GSHARD_COMPILED_KERNELS);
#endif
// Parts that were not requested are absent, even if gshard was configured with them.
#if !defined(PARTS) && (defined(BOOST_ALL_NO_LIB) || defined(BOOST_MPI_DYN_LINK) || defined(XTENSOR_ADAPT_HPP))
#error "Boost or xtensor is used, and was not asked for"
#endif
#endif

namespace gs = gshard;
using gs::none;
using gs::P;

constexpr auto dense = [](auto& m, auto x) {  // has internal linkage: build.cmake tests the size of the program
  return gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", P<"x", none>{}, gs::init::constant(1)));
};
using mesh = gs::mesh<gs::axis<"x">>;
using program = gs::program<dense, mesh, gs::in<"BM", P<none, "x">>>;
static_assert(program::plan.count(gs::op::all_reduce) == 1);

int main() {
#if !defined(PLAN_ONLY)
  const std::vector<float> x(3 * 5, 1.0f);
#endif
#if defined(TENSORS_ONLY)
  float sum = 0;
  const auto tensor = gs::from_global<float, P<none, "x">>(gs::simulate<mesh>(2), {3, 5}, x);
  gs::for_each_local_shard(tensor, [&](auto shard) {
    for (const float v : shard.span()) sum += v;
  });
  if (sum != 15) return 1;
#if defined(PARTS)
  if (gs::as_xtensor(tensor.local_shard(0))(0, 0) != 1.0f) return 1;
  gs::parameter_store store(gs::simulate<mesh>(2), 1);
  gs::save(store, "consumer.safetensors");
#endif
#elif !defined(PLAN_ONLY)
  gs::executable<program> run(gs::simulate<mesh>(2), {{'B', 3}, {'M', 5}, {'H', 4}});
  for (const float y : gs::to_global(run(x)))
    if (y != 5) return 1;
#endif
#if defined(PARTS) && EXPECTED_MPI
  const boost::mpi::environment mpi;
  gs::parameter_store store(gs::on_mpi<mesh>(boost::mpi::communicator()), 1);
  gs::executable<program> on_ranks(store.cluster(), {{'B', 3}, {'M', 5}, {'H', 4}}, store);
  gs::save(store, "consumer.safetensors");
  const auto y = on_ranks(x);
  if (gs::as_xtensor(y.local_shard(0))(0, 0) != 5.0f) return 1;
#if defined(WITH_HDF5)
  gs::save_hdf5("consumer.h5", "y", y);
  if (gs::to_global(gs::load_hdf5<float, P<none, "x">>(store.cluster(), "consumer.h5", "y")) != gs::to_global(y)) return 1;
#endif
#endif
}
