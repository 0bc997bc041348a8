// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The network concept: the seconds that a collective takes, on a cluster or a torus.

#include <gshard/ir/op.hpp>
#include <gshard/pass/cost/cost.hpp>

#include <concepts>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// Prices a collective: seconds from its start until every device along `axes`, a mask, has its data. The busiest device receives
/// `bytes_received`. A cluster (`machine`) and a torus (`torus_mesh`) are networks.
/// @see plan_view::bytes_received, machine, torus_mesh
template <class T>
concept network = requires(const T& on, op kind, std::uint32_t axes, const extents& e, std::int64_t bytes_received) {
  { on.seconds(kind, axes, e, bytes_received) } -> std::same_as<double>;
};

namespace detail {
/// Seconds of a collective whose groups move the same data along the axes of `replicas`. A network may have a function with these.
template <network Network>
constexpr double seconds_on(const Network& on, op kind, std::uint32_t axes, const extents& e, std::int64_t bytes_received,
                            std::uint32_t replicas) {
  if constexpr (requires { on.seconds(kind, axes, e, bytes_received, replicas); })
    return on.seconds(kind, axes, e, bytes_received, replicas);
  else return on.seconds(kind, axes, e, bytes_received);
}
}  // namespace detail

}}  // namespace gshard::v0
