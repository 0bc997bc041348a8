// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The program option that names the machine. The planner takes the cost of a collective's start from its network.

#include <gshard/core/cost/step_time.hpp>
#include <gshard/core/program/program.hpp>

namespace gshard { inline namespace v0 {

/// The machine of a program. It sets the cost of a collective's start, and auto_shard prices plans on it.
/// @see start_bytes_of
template <machine Machine>
struct runs_on : detail::added_option {};

namespace detail {
template <machine Machine>
constexpr void apply(program_options& o, runs_on<Machine>) {
  o.compile.start_bytes = start_bytes_of(Machine);
}
}  // namespace detail

}}  // namespace gshard::v0
