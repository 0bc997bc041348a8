// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Training whose gradients are sent in bf16 with error feedback: parameters, moments and residuals have the same bits as on simulated
// devices.
#include "../mpi_world.hpp"

#include <gshard/cluster/mpi_cluster.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/exec/program/executable.hpp>
#include <gshard/train/adam.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mpi_world::ranks;

namespace {

using wire_mesh = gs::mesh<gs::axis<"data">>;
inline constexpr auto train_on_wire = [](auto& m, auto x, auto y, auto rate) {
  auto w = m.param("w", "MN", gs::init::normal(0.5));
  auto v = m.param("v", "NK", P<"data", none>{}, gs::init::normal(0.5));
  auto d = gs::einsum<"BN,NK->BK">(gs::relu(gs::einsum<"BM,MN->BN">(x, w)), v) - y;
  auto loss = gs::mean(d * d);
  gs::adam{.wire = gs::gradient_wire::bf16_with_feedback}.minimize(m, loss, rate);
  return loss;
};
using wire_step = gs::program<train_on_wire, wire_mesh, in<"BM", P<"data", none>>, in<"BK", P<"data", none>>, in<"">>;

}  // namespace

TEST_CASE("gradient_wire, mpi: the bits of simulated devices, whichever nodes the ranks are on") {
  std::mt19937 gen(2);
  std::normal_distribution<float> normal;
  std::vector<float> x(24 * 7), y(24 * 3);
  for (float& e : x) e = normal(gen);
  for (float& e : y) e = normal(gen);
  const gs::dims sizes{{'B', 24}, {'M', 7}, {'N', 50}, {'K', 3}};
  for (const int node_size : {0, 2})
    for (const bool shared : {false, true}) {
      if (shared && node_size != 0) continue;
      CAPTURE(node_size);
      CAPTURE(shared);
      const auto real = gs::on_mpi<wire_mesh>(MPI_COMM_WORLD, {}, {.node_size = node_size, .shared_memory = shared});
      const auto alike = gs::simulate<wire_mesh>(ranks());
      gs::parameter_store here(real), there(alike);
      gs::executable<wire_step> run(real, sizes, here), simulated(alike, sizes, there);
      for (int i = 0; i < 6; ++i) {
        run(x, y, std::vector<float>{0.01f});
        simulated(x, y, std::vector<float>{0.01f});
      }
      bool has_residual = false;
      for (const auto& [name, entry] : here.entries()) {
        CAPTURE(name);
        const gs::detail::bound_value &a = entry.value, &b = there.find(name)->value;
        const auto me = std::size_t(mpi_world::rank());
        REQUIRE(a.bytes(0) == b.bytes(me));
        CHECK((a.bytes(0) == 0 || std::memcmp(a.data[0], b.data[me], std::size_t(a.bytes(0))) == 0));
        has_residual = has_residual || (name == "residual.w" && a.bytes(0) > 0);
      }
      CHECK(has_residual);
    }
}
