// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Gathers a value of a bound plan, such as a parameter, on every device.

#include <gshard/core/base/compiled.hpp>
#include <gshard/exec/bind/shards.hpp>
#include <gshard/exec/collective/make_collective.hpp>
#include <gshard/exec/program/parameter_access.hpp>
#include <gshard/exec/tensor/buffer.hpp>
#include <gshard/exec/tensor/cluster.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#if !GSHARD_HAS_BODIES
#error "gshard: with gshard::kernels, only its own source includes this header"
#endif

namespace gshard { inline namespace v0 { namespace detail {

GSHARD_INLINE bound_value replicate(const any_cluster& on, const bound_value& from, std::vector<buffer>& room) {
  bound_value to = from;
  to.layout = sharding::replicated(to.rank());
  to.positions.clear();
  for (std::size_t i = 0; i < to.places.size(); ++i) {
    to.places[i] = place(to.extents, to.layout, on.backend().extents(), on.devices()[i]);
    to.data[i] = room.emplace_back(to.bytes(i)).data();
  }
  // With a device order, replicas of a shard may be on any devices of the mesh.
  const op_ref how = from.positions.empty() ? op::all_gather : op::all_to_all;
  const std::uint32_t axes = from.positions.empty() ? from.layout.used() : (1u << on.backend().extents().size()) - 1u;
  constexpr std::uint32_t kinds = 1u << unsigned(move_kind::gather) | 1u << unsigned(move_kind::exchange);
  const auto gather =
      make_collective(collectives_for<kinds>, step_moves(how, on, axes, {{from, to}}), std::make_shared<collective_room>());
  gather->start();
  gather->finish();
  return to;
}

}}}  // namespace gshard::v0::detail
