// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parameters that are stored in bf16, trained on MPI ranks: the same bits as on simulated devices.
#include <gshard/cluster/mpi_cluster.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/exec/program/executable.hpp>
#include <gshard/exec/program/parameter_access.hpp>
#include <gshard/train/adafactor.hpp>
#include <gshard/train/adam.hpp>

#include "../mpi_world.hpp"

#include <Eigen/Core>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace gs = gshard;
using gs::bfloat16, gs::none, gs::P;
using line = gs::mesh<gs::axis<"x">>;

namespace {
inline constexpr gs::adam adam{.shard_state_over = "x"};
inline constexpr gs::adafactor adafactor{.shard_state_over = "x"};
template <const auto& Optimizer>
inline constexpr auto step = [](auto& m, auto x, auto rate) {
  const auto w = m.param("w", "MH", P<"x", none>{}, gs::init::fan_in("M"), gs::dtype::bf16);
  const auto b = m.param("b", "H", gs::init::normal(1), gs::dtype::bf16);
  const auto y = gs::einsum<"BM,MH->BH">(x, gs::cast<float>(w)) + gs::cast<float>(b);
  const auto loss = gs::mean(y * y);
  Optimizer.minimize(m, loss, rate);
  return loss;
};
template <const auto& Optimizer>
using program = gs::program<step<Optimizer>, line, gs::in<"BM", P<"x", none>>, gs::in<"">>;

template <const auto& Optimizer>
std::vector<float> trained(const gs::cluster<line>& on, const std::string& rest) {
  gs::executable<program<Optimizer>> run(on, {{'B', 6}, {'M', 5}, {'H', 4}}, gs::parameter_store(on, 7));
  std::vector<float> x(30), all;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(std::sin(double(i)));
  for (int t = 0; t < 4; ++t) all.push_back(run(x, std::vector{0.01f}).item());
  for (const char* name : {"w", "b"})
    for (const bfloat16 v : gs::to_global<bfloat16>(run.executor().store(), name)) all.push_back(float(v));
  for (const char* name : {"w", "b"})
    for (const float v : gs::to_global<float>(run.executor().store(), rest + name)) all.push_back(v);
  return all;
}
}  // namespace

TEST_CASE("mpi: training of parameters in bf16 has the bits of simulated devices") {
  const auto ranks = gs::on_mpi<line>(MPI_COMM_WORLD);
  const auto devices = gs::simulate<line>(mpi_world::ranks());
  CHECK(trained<adam>(ranks, "adam.rest.") == trained<adam>(devices, "adam.rest."));
  CHECK(trained<adafactor>(ranks, "adafactor.rest.") == trained<adafactor>(devices, "adafactor.rest."));
}
