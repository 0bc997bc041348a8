// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/exec/collective/collective.hpp>
#include <gshard/exec/collective/collective_room.hpp>
#include <gshard/exec/collective/step_moves.hpp>

#include "../backend/failing_exchanges.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// Matrices on simulated devices, and the checks that every kind of collective passes.
namespace on_devices {

namespace gs = gshard;

/// A cluster of simulated devices that counts exchanges.
struct cluster {
  std::shared_ptr<failing_exchanges> devices;
  gs::any_cluster on;

  explicit cluster(const std::vector<int>& extents, std::vector<int> node = {})
      : devices(std::make_shared<failing_exchanges>(extents, gs::node_map{std::move(node), gs::summation::by_member})),
        on(mesh_of(extents.size()), devices) {}
  static gs::mesh_shape mesh_of(std::size_t rank) {
    gs::mesh_shape m;
    for (std::size_t a = 0; a < rank; ++a) m.push_back(std::string(1, char('x' + a)), gs::dynamic);
    return m;
  }
};

/// A matrix of floats in a sharding, with memory on every device. An element is its number, times `addend` on the device if it is a partial
/// sum: all sums are exact.
class matrix {
 public:
  /// shards[d]: the axis that shards dim d, or -1.
  matrix(const cluster& c, std::pair<std::int64_t, std::int64_t> extents, std::pair<int, int> shards, bool partial = false) {
    value.extents = {extents.first, extents.second};
    value.layout = gs::sharding::replicated(2);
    if (shards.first >= 0) value.layout[0].push_back(shards.first);
    if (shards.second >= 0) value.layout[1].push_back(shards.second);
    value.layout.partial = partial ? 1 : 0;
    memory.resize(c.on.devices().size());
    for (std::size_t i = 0; i < memory.size(); ++i) {
      value.places.push_back(gs::detail::place(value, c.on.backend().extents(), c.on.devices()[i]));
      memory[i].resize(std::size_t(value.elements(i)));
      value.data.push_back(reinterpret_cast<std::byte*>(memory[i].data()));
    }
  }
  gs::detail::bound_value value;
  std::vector<std::vector<float>> memory;  // by device

  /// The elements times addend(device).
  template <class F>
  std::vector<std::vector<float>> numbers(F addend) const {
    std::vector<std::vector<float>> all = memory;
    for (std::size_t i = 0; i < all.size(); ++i)
      gs::kernel::for_each_element(value.places[i], [&](std::size_t global, std::size_t local) {
        all[i][local] = float(global) * float(addend(i));
      });
    return all;
  }
  void set(const std::vector<std::vector<float>>& numbers) {
    for (std::size_t i = 0; i < memory.size(); ++i) std::ranges::copy(numbers[i], memory[i].begin());
  }
};

/// Runs a collective in all ways: at once, advanced in between, dropped, and again. `out`: its result, `factor`: what its elements are
/// multiplied by. `received`: the bytes that device 0 receives in a run.
inline void check(const cluster& c, gs::detail::collective& step, matrix& out, float factor, std::int64_t received) {
  const std::vector<std::vector<float>> expected = out.numbers([&](std::size_t) { return factor; });
  const auto bytes = [&] { return c.devices->received()[0].exchange_bytes + c.devices->received()[0].gather_bytes; };
  for (const int advances : {0, 1, 1000}) {
    out.set(out.numbers([](std::size_t) { return -1; }));
    const std::int64_t before = bytes();
    step.start();
    for (int i = 0; i < advances && !step.advance(); ++i) {}
    step.finish();
    CHECK(out.memory == expected);
    CHECK(bytes() - before == received);
    CHECK(c.devices->started == c.devices->finished);
    step.start();
    step.drop();
    CHECK(c.devices->started == c.devices->finished);
  }
}

}  // namespace on_devices
