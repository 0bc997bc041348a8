// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Differences of operands between ranks are reported. Tensors of only one rank matter until the next collective call.
#include <gshard/exec/tensor/tensor_origin.hpp>

#include <gshard/cluster/mpi_cluster.hpp>
#include <gshard/eager/map.hpp>
#include <gshard/eager/reshard.hpp>

#include "../../complaint.hpp"
#include "../../mpi_world.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <vector>

namespace gs = gshard;
using gs::P;
using mpi_world::rank, mpi_world::ranks;

TEST_CASE("mpi: tensors are numbered since the last call, so that a tensor of one rank alone does no harm after it") {
  if (ranks() == 1) return;
  const bool last = rank() == ranks() - 1;
  const auto on = gs::on_mpi<gs::mesh<gs::axis<"x">>>(MPI_COMM_WORLD);
  using rows = gs::tensor<float, P<"x">>;
  for (const bool shared : {false, true}) {
    const auto cluster = shared ? gs::on_mpi<gs::mesh<gs::axis<"x">>>(MPI_COMM_WORLD, {}, {.shared_memory = true}) : on;
    std::optional<rows> alone;
    if (last) alone.emplace(cluster, std::vector<std::int64_t>{12});
    std::optional<rows> x(std::in_place, cluster, std::vector<std::int64_t>{12});
    const std::string said = complaint([&] { gs::reshard<P<gs::none>>(*x); });
    CHECK(contains(said, "reshard on tensors"));
    CHECK(contains(said, "the processes disagree on the tensor of operand 0: rank"));
    x.emplace(cluster, std::vector<std::int64_t>{12});
    CHECK(complaint([&] { gs::reshard<P<gs::none>>(*x); }).empty());
    const rows moved = std::move(*x);
    CHECK(complaint([&] { gs::reshard<P<gs::none>>(moved + moved); }).empty());
  }
}
