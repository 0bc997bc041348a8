// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/moe/placement/row_moves.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "../../exec/experts_in_training.hpp"

namespace {

using namespace experts_in_training;

TEST_CASE("a move sends a row to each device that lacks it, once") {
  const auto on = gs::simulate<expert_mesh>({2, 4});
  gs::parameter_store store(on, 3);
  gs::executable<layer_program<true>> run(on, sizes, store);
  gs::placed_experts experts(run.executor(), "moe");
  const gs::expert_placement before = experts.placement();
  const std::vector<double> load{50, 1, 1, 1, 1, 1, 1, 1};
  const gs::expert_placement now = gs::expert_placement(load, experts.on()).closest_to(before);
  CHECK(now.replicas(0) >= 3);
  const auto row_bytes = std::int64_t(M * F * sizeof(double));
  CHECK(experts.move(now) == 6 * 2 * now.moved_from(before) * row_bytes);  // six tensors, on both devices along data
  CHECK(experts.placement() == now);
  rows_of_experts(store, "moe.wo", now.expert());
  CHECK(experts.move(now) == 0);
  CHECK_FALSE(experts.balance(load));
  const gs::expert_placement twice = gs::expert_placement::of({0, 0, 0, 1, 1, 2, 3, 3, 4, 5, 6, 7}, int(E), experts.on());
  CHECK(experts.move(twice) == 6 * 2 * twice.moved_from(now) * row_bytes);
  rows_of_experts(store, "moe.wo", twice.expert());
}

TEST_CASE("a row that several devices of a node lack crosses between nodes once, with the bits of one node; nodes are those of the cluster") {
  const std::vector<int> hot{0, 1, 2, 0, 3, 4, 0, 5, 6, 0, 7, 1};  // the expert of each slot: expert 0 on all 4 devices
  const auto moved = [&](const std::vector<int>& mesh, gs::node_map nodes, int expected_nodes) {
    const auto on = gs::simulate<expert_mesh>(mesh, std::move(nodes));
    gs::parameter_store store(on, 3);
    gs::executable<layer_program<true>> run(on, sizes, store);
    gs::placed_experts experts(run.executor(), "moe");
    CHECK(experts.on().nodes == expected_nodes);
    gs::backend& devices = store.cluster().backend();
    devices.reset_received();
    const gs::expert_placement to = gs::expert_placement::of(hot, int(E), experts.on());
    const int lacking = to.moved_from(experts.placement());
    const auto row_bytes = std::int64_t(M * F * sizeof(double));
    const std::vector<gs::traffic> planned = experts.planned_traffic(to);
    CHECK(experts.move(to) == 6 * mesh[0] * lacking * row_bytes);
    CHECK(std::ranges::equal(planned, devices.received()));
    std::int64_t between = 0;
    for (const auto& t : devices.received()) between += t.between_nodes;
    return std::pair{rows_of_experts(store, "moe.wo", to.expert()), between / (6 * row_bytes)};
  };
  // Before, the devices have experts 0 0 1, 2 2 3, 4 4 5 and 6 6 7. Devices 2 and 3 lack 0.
  const auto one = moved({1, 4}, {}, 1), two = moved({1, 4}, {{0, 0, 1, 1}}, 2);
  CHECK(one.first == two.first);
  CHECK(two.second == 3);  // expert 4 to the first node; 1 and 0 to the second one, where a device forwards 0
  CHECK(moved({1, 4}, {{0, 1, 2, 3}}, 4).first == one.first);
  CHECK(moved({1, 4}, {{0, 1, 0, 1}}, 1).first == one.first);
  CHECK(moved({1, 4}, {{0, 0, 0, 1}}, 1).first == one.first);
  const auto by_data = moved({2, 4}, {{0, 0, 0, 0, 1, 1, 1, 1}}, 1);  // each node has all experts
  CHECK((by_data.first == one.first && by_data.second == 0));
  CHECK(moved({2, 4}, {{0, 0, 1, 1, 0, 0, 1, 1}}, 2).second == 3);  // a node has two devices for each slot
}

}  // namespace
