// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Imported models on MPI ranks: the bits of simulated devices, weights in shards, and ranks with other weights.
#include <gshard/onnx/program/import_program.hpp>

#include <gshard/gshard.hpp>

#include "../../complaint.hpp"
#include "../../mpi_world.hpp"
#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace gs = gshard;
namespace on = gshard::onnx;
using namespace onnx_tests;

namespace {

on::model dense(double first) {
  graph g;
  g.inputs.push_back({"x", on::element::f32, {"3", "4"}});
  g.initializers = {{"w", f32({4, 2}, {first, 2, 3, 4, 5, 6, 7, 8})}, {"b", f32({2}, {1, -2})}};
  g.nodes = {{"Gemm", {"x", "w", "b"}, {"h"}}, {"Tanh", {"h"}, {"y"}}};
  g.outputs.push_back({"y"});
  return model_of(g);
}
std::vector<float> result_on(const gs::any_cluster& cluster, double first = 0.1) {
  const on::imported_program p = on::import_program(dense(first), cluster.mesh(), {.shardings = {{"x", "B,M@x"}}});
  gs::parameter_store store(cluster);
  gs::runtime_executable run(p.program, cluster, p.extents, store);
  on::load(p, store);
  std::vector<float> x;
  for (int i = 0; i < 12; ++i) x.push_back(float(i) / 64);
  return gs::to_global<float>(run(x).front());
}

}  // namespace

TEST_CASE("mpi: an imported model has the bits of simulated devices") {
  const auto cluster = gs::on_mpi(MPI_COMM_WORLD, "x");
  CHECK(result_on(cluster) == result_on(gs::simulate("x", mpi_world::ranks())));
}

TEST_CASE("mpi: ranks with other weights") {
  if (mpi_world::ranks() == 1) return;
  const bool last = mpi_world::rank() == mpi_world::ranks() - 1;
  const auto cluster = gs::on_mpi(MPI_COMM_WORLD, "x");
  CHECK(contains(complaint([&] { result_on(cluster, last ? 0.2 : 0.1); }), "the weights of the model"));
}
