// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parameters that are stored in bf16, trained on MPI ranks: the bits of simulated devices.
#include <gshard/exec/executable.hpp>
#include <gshard/exec/parameter_access.hpp>
#include <gshard/optim/adam.hpp>
#include <gshard/tensor/mpi_cluster.hpp>
#include <gshard/trace/einsum.hpp>
#include <gshard/trace/map.hpp>

#include "../mpi_world.hpp"

#include <Eigen/Core>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

namespace gs = gshard;
using gs::bfloat16, gs::none, gs::P;
using line = gs::mesh<gs::axis<"x">>;

namespace {
inline constexpr auto step = [](auto& m, auto x, auto rate) {
  const auto w = m.param("w", "MH", P<"x", none>{}, gs::init::fan_in("M"), gs::dtype::bf16);
  const auto b = m.param("b", "H", gs::init::normal(1), gs::dtype::bf16);
  const auto y = gs::einsum<"BM,MH->BH">(x, gs::cast<float>(w)) + gs::cast<float>(b);
  const auto loss = gs::mean(y * y);
  gs::adam{.shard_state_over = "x"}.minimize(m, loss, rate);
  return loss;
};
using program = gs::program<step, line, gs::in<"BM", P<"x", none>>, gs::in<"">>;

std::vector<float> trained(const gs::cluster<line>& on) {
  gs::executable<program> run(on, {{'B', 6}, {'M', 5}, {'H', 4}}, gs::parameter_store(on, 7));
  std::vector<float> x(30), all;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(std::sin(double(i)));
  for (int t = 0; t < 4; ++t) all.push_back(run(x, std::vector{0.01f}).item());
  for (const char* name : {"w", "b"})
    for (const bfloat16 v : gs::to_global<bfloat16>(run.engine().store(), name)) all.push_back(float(v));
  for (const char* name : {"adam.rest.w", "adam.rest.b"})
    for (const float v : gs::to_global<float>(run.engine().store(), name)) all.push_back(v);
  return all;
}
}  // namespace

TEST_CASE("mpi: training of parameters in bf16 has the bits of simulated devices") {
  CHECK(trained(gs::on_mpi<line>(MPI_COMM_WORLD)) == trained(gs::simulate<line>(mpi_world::ranks())));
}
