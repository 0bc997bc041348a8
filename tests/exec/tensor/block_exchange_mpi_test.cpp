// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors from blocks of an application's decomposition, and back, on MPI ranks.
#include "../../complaint.hpp"
#include "../../mpi_world.hpp"
#include "random_blocks.hpp"

#include <gshard/cluster/mpi_cluster.hpp>
#include <gshard/exec/tensor/local_blocks.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace gs = gshard;
using gs::none;
using gs::P;
using mpi_world::rank;
using mpi_world::ranks;

TEST_CASE("mpi: random decompositions, any sharding; a rank receives what it lacks") {
  using mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>;
  std::uint32_t seed = 1000;
  for (int a = 1; a <= ranks(); ++a)
    if (ranks() % a == 0) {
      const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD, {a, ranks() / a});
      for (int i = 0; i < 24; ++i) random_blocks::check_all(on, ++seed);
    }
}

TEST_CASE("mpi: blocks that are wrong on one rank are refused on all") {
  if (ranks() == 1) return;
  const auto on = gs::on_mpi<gs::mesh<gs::axis<"x">>>(MPI_COMM_WORLD);
  std::vector<float> x(100);
  const auto of = [&](const std::vector<gs::local_block<float>>& blocks, std::int64_t rows = 4) {
    return complaint([&] { static_cast<void>(gs::from_local_blocks<P<"x", none>>(on, {rows, 4}, blocks)); });
  };
  using blocks = std::vector<gs::local_block<float>>;
  const std::string all = of(rank() == 0 ? blocks{{x.data(), {0, 0}, {4, 5}}} : blocks());
  CHECK(all == std::string(rank() == 0 ? "" : "rank 0 failed: ") +
                   "local block 0 at [0,0] with extents [4,5] is not inside the array [4,4]");
  const std::string hole = of(rank() == 0 ? blocks{{x.data(), {0, 0}, {1, 4}}} : blocks());
  CHECK(hole.ends_with("is in no block"));
  CHECK(of({}, 4 + rank()).find("the processes disagree on the extents of the array") != std::string::npos);
  CHECK(of(rank() == 0 ? blocks{{x.data(), {0, 0}, {4, 4}}} : blocks()) == "");  // the cluster remains usable
}

TEST_CASE("mpi: too little memory for the tensor on one rank is an error on all") {
  if (ranks() == 1) return;
  const auto on = gs::on_mpi<gs::mesh<gs::axis<"x">>>(MPI_COMM_WORLD);
  const std::int64_t n = std::int64_t(1) << 24;
  std::vector<float> x;
  if (rank() == 0) x.assign(std::size_t(n), 1.0f);
  const gs::local_block<float> all(x.data(), {0}, {rank() == 0 ? n : 0}, {1});
  gs::local_blocks<float, P<none>> exchange(on, {n}, {all});  // rank 0 has its shard
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  if (rank() == 1) {
    std::int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit little{rlim_t(pages) * rlim_t(sysconf(_SC_PAGESIZE)) + (rlim_t(16) << 20), before.rlim_max};
    setrlimit(RLIMIT_AS, &little);
  }
  const std::string said = complaint([&] { static_cast<void>(exchange.to_tensor()); });
  setrlimit(RLIMIT_AS, &before);
  CHECK(contains(said, "there is no memory for 67108864 bytes"));
  CHECK(exchange.to_tensor().local_shard(0).data[n - 1] == 1);
}
