// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/collective/step_moves.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace gs = gshard;

namespace {

gs::mesh_shape mesh_x() {
  gs::mesh_shape m;
  m.push_back("x", gs::dynamic);
  return m;
}

/// A matrix whose dim `cut`, or none, is sharded over the axis of a mesh, with memory on every device.
gs::detail::bound_value matrix(const gs::any_cluster& on, int cut, std::vector<std::vector<float>>& memory) {
  gs::detail::bound_value v;
  v.extents = {7, 5};
  v.layout = gs::sharding::replicated(2);
  if (cut >= 0) v.layout[cut].push_back(0);
  memory.resize(on.devices().size());
  for (std::size_t i = 0; i < on.devices().size(); ++i) {
    v.places.push_back(gs::detail::place(v, on.backend().extents(), on.devices()[i]));
    memory[i].resize(std::size_t(v.elements(i)));
    gs::kernel::for_each_element(v.places[i], [&](std::size_t global, std::size_t local) { memory[i][local] = float(global); });
    v.data.push_back(reinterpret_cast<std::byte*>(memory[i].data()));
  }
  return v;
}

}  // namespace

TEST_CASE("step moves: what all members send and keep makes up the new shards") {
  for (const int devices : {1, 2, 3, 8}) {
    const gs::any_cluster on(mesh_x(), std::make_shared<gs::simulated>(std::vector{devices}));
    for (const auto& [from, to] : {std::pair{0, 1}, {1, 0}, {0, -1}, {0, 0}, {-1, 1}}) {
      std::vector<std::vector<float>> before, after;
      const gs::detail::bound_value in = matrix(on, from, before), out = matrix(on, to, after);
      const gs::detail::step_moves moves(to < 0 ? gs::op::all_gather : gs::op::all_to_all, on, 1, {{in, out}});
      CHECK(moves.stays() == (devices == 1));
      CHECK(moves.devices() == std::size_t(devices));
      CHECK(moves.elements(0) == in.elements(0));
      const std::vector<std::vector<float>> expected = after;
      for (auto& shard : after) std::fill(shard.begin(), shard.end(), -1.0f);
      moves.for_each_origin(moves.group(0), [&](std::size_t sender, std::size_t receiver, const std::vector<gs::detail::piece>& pieces) {
        for (const gs::detail::piece& b : pieces) moves.copy(b, in.data[sender], in.places[sender], receiver);
      });
      CHECK(after == expected);
      for (std::size_t i = 0; i < std::size_t(devices); ++i) {
        std::fill(after[i].begin(), after[i].end(), -1.0f);
        moves.copy(moves.kept(i), i);
        for (std::size_t k = 0; k < after[i].size(); ++k) CHECK((after[i][k] == -1.0f || after[i][k] == expected[i][k]));
      }
    }
  }
}
