// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The network concept: the seconds that a collective takes, on a cluster or a torus.

#include <gshard/core/ir/op.hpp>
#include <gshard/core/reshard/cost.hpp>

#include <concepts>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// Prices a collective: seconds from its start until every device along `axes`, a mask, has its data. The busiest device receives
/// `bytes_received`. A cluster (`machine`) and a torus (`torus_mesh`) are networks.
/// @see plan_view::bytes_received, machine, torus_mesh
template <class T>
concept network = requires(const T& on, op_ref kind, std::uint32_t axes, const extents& e, std::int64_t bytes_received) {
  { on.seconds(kind, axes, e, bytes_received) } -> std::same_as<double>;
};

/// A network whose devices share links in nodes. Groups along `axes` that differ only along the axes of `replicas` move the same data. A
/// node receives that data once for all of them. On a torus each device has its own links, so the data travel once for each group.
/// @see machine
template <class T>
concept network_of_nodes =
    network<T> && requires(const T& on, op_ref kind, std::uint32_t axes, const extents& e, std::int64_t bytes, std::uint32_t replicas) {
      { on.seconds(kind, axes, e, bytes, replicas) } -> std::same_as<double>;
      { on.bytes_between_nodes(kind, axes, e, bytes, replicas) } -> std::same_as<double>;
    };

namespace detail {
/// Seconds of a collective. Only a network of nodes uses `replicas`. A ragged exchange starts twice: counts travel first.
template <network Network>
constexpr double seconds_on(const Network& on, op_ref kind, std::uint32_t axes, const extents& e, std::int64_t bytes_received,
                            std::uint32_t replicas) {
  const auto seconds = [&](std::int64_t bytes) {
    if constexpr (network_of_nodes<Network>) return on.seconds(kind, axes, e, bytes, replicas);
    else return on.seconds(kind, axes, e, bytes);
  };
  return seconds(bytes_received) + (traits(kind).ragged && bytes_received > 0 ? seconds(1) : 0);
}
}  // namespace detail

}}  // namespace gshard::v0
