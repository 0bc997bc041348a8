// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/collective/all_reduce_step.hpp>

#include <gshard/exec/backend/simulated.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

namespace gs = gshard;

namespace {

using numbers = std::vector<std::vector<float>>;  // by device

struct summed {
  numbers first, second;
  std::int64_t between = 0, received = 0;  // bytes
};

gs::detail::bound_value vector_on(const gs::any_cluster& on, numbers& memory, bool partial) {
  gs::detail::bound_value v;
  v.extents = {std::int64_t(memory[0].size())};
  v.layout = gs::sharding::replicated(1);
  v.layout.partial = partial ? 1 : 0;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    v.places.push_back(gs::detail::place(v, on.backend().extents(), int(i)));
    v.data.push_back(reinterpret_cast<std::byte*>(memory[i].data()));
  }
  return v;
}

/// Sums two tensors over the first axis of 3 x 2 devices, together or one by one. The tensors are replicated along the second axis.
summed sum(std::size_t n, const gs::node_map& nodes, bool together) {
  const auto b = std::make_shared<gs::simulated>(std::vector{3, 2}, nodes);
  gs::mesh_shape mesh;
  mesh.push_back("x", gs::dynamic);
  mesh.push_back("y", gs::dynamic);
  const gs::any_cluster on(mesh, b);
  numbers first(6, std::vector<float>(n)), second(6, std::vector<float>(n / 2 + 1));
  for (std::size_t d = 0; d < 6; ++d) {
    std::iota(first[d].begin(), first[d].end(), float(d / 2 + 1) * 0.3f);
    std::iota(second[d].begin(), second[d].end(), float(d / 2 + 1) * 0.7f);
  }
  summed s{numbers(6, std::vector<float>(n)), numbers(6, std::vector<float>(n / 2 + 1))};
  const gs::detail::moved_tensor one{vector_on(on, first, true), vector_on(on, s.first, false)},
      other{vector_on(on, second, true), vector_on(on, s.second, false)};
  const auto room = std::make_shared<gs::detail::collective_room>();
  const auto run = [&](const std::vector<gs::detail::moved_tensor>& tensors) {
    gs::detail::all_reduce_step step(gs::detail::step_moves(gs::op::all_reduce, on, 1, tensors), room);
    step.start();
    step.advance();
    step.finish();
  };
  if (together) {
    run({one, other});
  } else {
    run({one});
    run({other});
  }
  for (const gs::traffic& t : b->received()) {
    s.between += t.between_nodes;
    s.received += t.exchange_bytes + t.gather_bytes;
  }
  return s;
}

}  // namespace

TEST_CASE("all_reduce step: groups of replicas on the same nodes send one sum between them, with the same bits") {
  for (const std::size_t n : {2u, 1000u, 4321u}) {
    const summed flat = sum(n, {{}, gs::summation::by_member}, false);
    for (const bool together : {false, true}) {
      const summed shared = sum(n, {{0, 0, 1, 1, 2, 2}, gs::summation::by_member}, together),
                   apart = sum(n, {{0, 3, 1, 4, 2, 5}, gs::summation::by_member}, together);
      CHECK(shared.first == flat.first);
      CHECK(shared.second == flat.second);
      CHECK(apart.first == flat.first);
      const std::int64_t bytes = std::int64_t(n + n / 2 + 1) * 4;
      if (n == 2) CHECK(shared.between == apart.between);  // gathered in one step
      else CHECK(shared.between == 2 * 2 * bytes);
      CHECK(apart.between == (n == 2 ? 2 * 6 : 2 * 4) * bytes);
      CHECK(shared.received == apart.received);
    }
  }
}
