// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "calibrate/training_step.hpp"

#include <gshard/gshard.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

// The training step of the benchmarks, its tokens, and its cluster.
namespace bench {

using calibrate::expert_mesh;

template <int Layers, class... Options>
using transformer_program = calibrate::transformer_program<calibrate::transformer_model<Layers, false>, Options...>;

/// Source, target and shifted target of a batch: ids from 1 to `vocabulary` - 1.
inline std::array<std::vector<std::int32_t>, 3> random_tokens(std::int64_t tokens, std::int64_t vocabulary) {
  std::array<std::vector<std::int32_t>, 3> all;
  for (std::uint64_t i = 0; i < std::uint64_t(tokens); ++i)
    for (std::size_t k = 0; k < all.size(); ++k) {
      const std::uint64_t h = gshard::fnv1a<std::uint64_t>().add(i).add(std::uint64_t(k + 1)).value();
      all[k].push_back(std::int32_t(1 + h % std::uint64_t(vocabulary - 1)));
    }
  return all;
}

/// Calls f(cluster, prints) on the ranks that mpirun started, or on one device. One process prints.
template <class Mesh, class F>
void on_all_ranks([[maybe_unused]] int& count, [[maybe_unused]] char**& arguments, F f) {
  int ranks = 1, rank = 0;
#if GSHARD_HAS_MPI
  MPI_Init(&count, &arguments);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (ranks > 1) f(gshard::on_mpi<Mesh>(MPI_COMM_WORLD), rank == 0);
#endif
  if (ranks == 1) f(gshard::on_one_device<Mesh>(), true);
#if GSHARD_HAS_MPI
  MPI_Finalize();
#endif
}

}  // namespace bench
