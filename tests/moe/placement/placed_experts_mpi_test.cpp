// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Experts that move between ranks during training: the same bits as on simulated devices.
#include "../../mpi_world.hpp"

#include <gshard/cluster/mpi_cluster.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "../../complaint.hpp"
#include "../../exec/experts_in_training.hpp"

namespace test = experts_in_training;
namespace gs = gshard;

TEST_CASE("placed_experts, mpi: the bits of simulated devices, whichever nodes the ranks are on") {
  if (12 % mpi_world::ranks() != 0) return;
  for (const int node_size : {0, 2}) {
    CAPTURE(node_size);
    const std::vector<int> mesh{1, mpi_world::ranks()};
    const auto real = gs::on_mpi<test::expert_mesh>(MPI_COMM_WORLD, mesh, {.node_size = node_size});
    const auto alike = gs::simulate<test::expert_mesh>(mesh);
    gs::parameter_store here(real, 8), there(alike, 8);
    const auto balance = [&](int step, auto& run, std::vector<double> demand) {
      if (step % 2 == 0) gs::placed_experts(run.executor(), "moe", 1).balance(demand, 1);
    };
    CHECK(test::train<true>(real, here, 5, balance) == test::train<true>(alike, there, 5, balance));
    for (const auto& [name, entry] : here.entries()) {
      CAPTURE(name);
      const gs::detail::bound_value &a = entry.value, &b = there.find(name)->value;
      const auto me = std::size_t(mpi_world::rank());
      REQUIRE(a.bytes(0) == b.bytes(me));
      CHECK((a.bytes(0) == 0 || std::memcmp(a.data[0], b.data[me], std::size_t(a.bytes(0))) == 0));
    }
    if (mpi_world::ranks() > 1) {
      gs::executable<test::layer_program<true>> run(real, test::sizes, here);
      gs::placed_experts experts(run.executor(), "moe");
      std::vector<int> expert = experts.placement().expert();
      std::ranges::rotate(expert, expert.begin() + 1);
      const gs::expert_placement turned = gs::expert_placement::of(expert, int(test::E), experts.on());
      const gs::traffic planned = experts.planned_traffic(turned)[std::size_t(mpi_world::rank())];
      here.cluster().backend().reset_received();
      experts.move(turned);
      CHECK(here.cluster().backend().received()[0] == planned);
      if (mpi_world::rank() == 1) std::swap(expert.front(), expert.back());
      const gs::expert_placement to = gs::expert_placement::of(expert, int(test::E), experts.on());
      CHECK(contains(complaint([&] { experts.move(to); }), "the placement of \"moe.expert_of\""));
    }
  }
}
