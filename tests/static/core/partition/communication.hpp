// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/plan.hpp>

#include "../../soundness.hpp"

#include <cstddef>
#include <initializer_list>

// The communication of a plan.
namespace communication {

namespace gs = gshard;

/// True if the collectives of a plan are these, in this order.
constexpr bool sends(const gs::plan_view& p, std::initializer_list<gs::op_ref> kinds) {
  std::size_t i = 0;
  for (const gs::node& s : p.steps)
    if (gs::traits(s.kind).collective && (i >= kinds.size() || kinds.begin()[i++] != s.kind)) return false;
  return i == kinds.size();
}
constexpr const gs::value& output_of(const gs::plan_view& p, std::size_t i = 0) { return p.at(p.outputs[i].value); }

/// The plan of a program, which must be sound.
template <auto Model, class Mesh, class... Options>
constexpr gs::plan_view plan_of = [] {
  constexpr gs::plan_view p = gs::program<Model, Mesh, Options...>::plan;
  static_assert(soundness::is_sound(p));
  return p;
}();

}  // namespace communication
