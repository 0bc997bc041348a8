// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layers that train on MPI ranks: the same bits as on simulated devices. Dropless, with groups that refuse choices; in groups, in chunks.
#include "../../mpi_world.hpp"

#include <gshard/exec/program/executable.hpp>
#include <gshard/exec/program/parameter_access.hpp>
#include <gshard/moe/layer/moe.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/train/adam.hpp>
#include <gshard/core/program/program.hpp>
#include <gshard/cluster/mpi_cluster.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"expert">>;
constexpr std::size_t S = 7, M = 4;

inline constexpr auto model = [](auto& m, auto x, auto mask, auto rate) {
  const gs::nn::moe_result r =
      gs::nn::moe<"expert">(m, x, mask, {.experts = gs::experts::dropless(4, {2.5}), .swiglu = true, .biases = true});
  const auto error = r.y - 3.0 * x;
  const auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
  return std::tuple{loss, r.overflow};
};
using step = gs::program<model, mesh, gs::in<"GSM", P<"expert", none, none>>, gs::in<"GS", P<"expert", none>>, gs::in<"">>;

// Experts in groups, in two chunks of token groups. A token group may have less than one row per token.
inline constexpr auto model_in_chunks = [](auto& m, auto x, auto mask, auto rate) {
  const gs::nn::moe_result r = gs::nn::moe<"node", "expert">(
      m, x, mask, {.routing = {.k = 3}, .experts = gs::experts::in_groups(4, {2}), .swiglu = true, .biases = true, .chunks = 2});
  const auto error = r.y - 3.0 * x;
  const auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
  return std::tuple{loss, r.overflow};
};
using grid = gs::mesh<gs::axis<"node">, gs::axis<"expert">>;
using of_both = P<gs::axes<"expert", "node">, none, none>;
using step_in_chunks =
    gs::program<model_in_chunks, grid, gs::in<"GSM", of_both>, gs::in<"GS", P<gs::axes<"expert", "node">, none>>, gs::in<"">>;

struct result {
  std::vector<float> losses, weights;
  float overflow = 0;
  bool operator==(const result&) const = default;
};
template <class Step, class Mesh>
result train(const gs::cluster<Mesh>& on, std::size_t G) {
  gs::executable<Step> run(on, {{'G', std::int64_t(G)}, {'S', S}, {'M', M}, {'E', 8}, {'F', 5}}, gs::parameter_store(on, 3));
  std::vector<float> x(G * S * M), mask(G * S);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(std::sin(1.7 * double(i)));
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = i % 5 == 2 ? 0.0f : 1.0f;
  result r;
  for (int i = 0; i < 5; ++i) {
    const auto [loss, overflow] = run(x, mask, std::vector{1e-2f});
    r.losses.push_back(loss.item());
    r.overflow += overflow.item();
  }
  for (const char* name : {"wi", "bo"}) {
    const std::vector<float> w = gs::to_global<float>(run.executor().store(), name);
    r.weights.insert(r.weights.end(), w.begin(), w.end());
  }
  return r;
}

}  // namespace

TEST_CASE("dropless experts, mpi: the bits of simulated devices, whichever choices are refused") {
  const result found = train<step>(gs::on_mpi<mesh>(MPI_COMM_WORLD), 6);
  CHECK(found == train<step>(gs::simulate<mesh>(mpi_world::ranks()), 6));
  CHECK(found.losses.back() < found.losses.front());
  CHECK(found.overflow > 0);
}

TEST_CASE("expert groups in chunks, mpi: the bits of simulated devices, whether each has a multiple of two token groups or not") {
  const int ranks = mpi_world::ranks(), nodes = ranks % 2 == 0 ? 2 : ranks;
  const std::vector<int> devices{nodes, ranks / nodes};
  for (const std::size_t groups : {std::size_t(4) * std::size_t(ranks), std::size_t(6)}) {
    const result found = train<step_in_chunks>(gs::on_mpi<grid>(MPI_COMM_WORLD, devices), groups);
    CHECK(found == train<step_in_chunks>(gs::simulate<grid>(devices), groups));
    CHECK(found.losses.back() < found.losses.front());
    CHECK(found.overflow > 0);
  }
}

namespace {

/// Fails on the device whose z has a non-finite number, before it routes tokens, but after a first collective.
inline constexpr auto checked = [](auto& m, auto x, auto z, auto mask, auto rate) {
  const auto finite = gs::check_finite(x - gs::mean(x) + z, "x + z");
  const gs::nn::moe_result r = gs::nn::moe<"expert">(m, finite, mask, {.experts = gs::experts::dropless(4)});
  const auto error = r.y - 3.0 * finite;
  const auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
  return std::tuple{loss, r.y};
};
using checked_step = gs::program<checked, mesh, gs::in<"GSM", P<"expert", none, none>>, gs::in<"GSM", P<"expert", none, none>>,
                                 gs::in<"GS", P<"expert", none>>, gs::in<"">>;
static_assert(checked_step::plan.count(gs::op::ragged_all_to_all) >= 3);

}  // namespace

TEST_CASE("mpi: a rank that fails before it counts rows stops no other rank, in one exchange after the other or in several at once") {
  constexpr std::size_t G = 6;
  const gs::dims sizes{{'G', G}, {'S', S}, {'M', M}, {'E', 8}, {'F', 5}};
  const auto simulated = gs::simulate<mesh>(mpi_world::ranks());
  for (const gs::overlap_mode overlap : {gs::overlap_mode::off, gs::overlap_mode::on})
    for (const int node_size : {0, 1}) {  // on one node, messages advance without calls
      const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD, {}, {.node_size = node_size, .overlap = overlap});
      gs::executable<checked_step> run(on, sizes, gs::parameter_store(on, 3));
      gs::executable<checked_step> expected(simulated, sizes, gs::parameter_store(simulated, 3));
      std::vector<float> x(G * S * M), z(x.size(), 0.0f);
      const std::vector<float> mask(G * S, 1.0f), rate{1e-2f};
      for (int i = 0; i < 4; ++i) {
        for (std::size_t k = 0; k < x.size(); ++k) x[k] = float(std::sin(1.7 * double(k + std::size_t(i))));
        z.back() = i % 2 == 1 ? std::numeric_limits<float>::quiet_NaN() : 0.0f;
        if (i % 2 == 1) {
          CHECK_THROWS_AS(run(x, z, mask, rate), gs::not_finite_error);
          continue;
        }
        const auto [loss, y] = run(x, z, mask, rate);
        const auto [expected_loss, expected_y] = expected(x, z, mask, rate);
        CHECK(loss.item() == expected_loss.item());
        CHECK(gs::to_global(y) == gs::to_global(expected_y));
        CHECK(run.executor().received_in_run()[0] == expected.executor().received_in_run()[std::size_t(on.devices()[0])]);
      }
      CHECK(run.executor().received(gs::op::ragged_all_to_all).calls == 4 * checked_step::plan.count(gs::op::ragged_all_to_all));
    }
}
