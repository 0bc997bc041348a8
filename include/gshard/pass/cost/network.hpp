// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/ir/op.hpp>
#include <gshard/pass/cost/cost.hpp>

#include <concepts>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// What prices a collective: seconds from its start until the last device of the axes of a mask has all that it receives, where the
/// busiest receives so many bytes. A cluster and a torus are networks. @see plan_view::bytes_received, machine, torus_mesh
template <class T>
concept network = requires(const T& on, op kind, std::uint32_t axes, const extents& e, std::int64_t bytes_received) {
  { on.seconds(kind, axes, e, bytes_received) } -> std::same_as<double>;
};

}}  // namespace gshard::v0
