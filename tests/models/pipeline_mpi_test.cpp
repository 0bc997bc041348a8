// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A pipeline that trains on MPI ranks: the same bits as on simulated devices, also if the ranks do not divide the stages.
#include "../mpi_world.hpp"

#include <gshard/cluster/mpi_cluster.hpp>
#include <gshard/core/program/program.hpp>
#include <gshard/exec/program/executable.hpp>
#include <gshard/exec/program/parameter_access.hpp>
#include <gshard/models/pipeline.hpp>
#include <gshard/train/adam.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

namespace gs = gshard;
using gs::extent, gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"stage">>;
constexpr int stages = 4, microbatches = 5, rounds = 2;

inline constexpr auto layer = [](auto y, auto w) {
  return y + gs::map<[](auto v) { return tanh(v); }>(gs::einsum<"SBF,SFG->SBG">(y, w));
};
template <gs::remat_policy Saved, gs::nn::pipeline_plan Plan>
inline constexpr auto model = [](auto& m, auto x, auto rate) {
  const auto w = m.param("w", "RSFF", P<none, "stage", none, none>{}, gs::init::fan_in("F"));
  const auto y = gs::nn::pipeline(m, {rounds, Saved, Plan}, layer, x, w);
  const auto loss = gs::mean(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
template <gs::remat_policy Saved, gs::nn::pipeline_plan Plan>
using step = gs::program<model<Saved, Plan>, mesh, gs::in<"MBF", P<none, none, none>>, gs::in<"">, extent<'M', microbatches>,
                         extent<'S', stages>, extent<'R', rounds>>;

/// The losses of some steps, and the final weights.
template <gs::remat_policy Saved, gs::nn::pipeline_plan Plan>
std::vector<float> trained(const gs::cluster<mesh>& on) {
  gs::executable<step<Saved, Plan>> run(on, {{'M', microbatches}, {'B', 2}, {'F', 3}, {'S', stages}, {'R', rounds}},
                                        gs::parameter_store(on, 3));
  std::vector<float> x(microbatches * 2 * 3);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(std::sin(1.7 * double(i)));
  std::vector<float> found;
  for (int i = 0; i < 5; ++i) found.push_back(run(x, std::vector{1e-2f}).item());
  const std::vector<float> w = gs::to_global<float>(run.executor().store(), "w");
  found.insert(found.end(), w.begin(), w.end());
  return found;
}

template <gs::remat_policy Saved, gs::nn::pipeline_plan Plan>
void compare() {
  const auto found = trained<Saved, Plan>(gs::on_mpi<mesh>(MPI_COMM_WORLD));
  CHECK(found == trained<Saved, Plan>(gs::simulate<mesh>(mpi_world::ranks())));
  CHECK(found[4] < found[0]);
}

}  // namespace

TEST_CASE("pipeline: equal bits on ranks and simulated devices") {
  compare<gs::remat_policy::everything, gs::nn::pipeline_plan::loop>();
  compare<gs::remat_policy::everything, gs::nn::pipeline_plan::all_ticks>();
  compare<gs::remat_policy::nothing, gs::nn::pipeline_plan::loop>();
}
