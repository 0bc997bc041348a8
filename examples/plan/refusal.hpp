// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/core/ir/fault.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/exec/process/diagnostic.hpp>

#include <stdexcept>
#include <string>

namespace planning {

namespace gs = gshard;

/// The request cannot be planned. The message is one sentence with a remedy.
struct refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// "x, y"
inline std::string names_of(const gs::mesh_shape& mesh) {
  std::string s;
  for (int a = 0; a < mesh.rank(); ++a) s += (a ? ", " : "") + std::string(mesh.name(a));
  return s;
}

namespace detail {
inline std::string remedy(gs::fault what, const gs::mesh_shape& mesh) {
  switch (what) {
    case gs::fault::unknown_axis: return "the mesh has " + names_of(mesh);
    case gs::fault::axis_used_twice: return "let each axis shard one dim or hold one partial sum";
    case gs::fault::rank_mismatch: return "give one extent per dim";
    case gs::fault::malformed_equation: return "write for example \"BMK,BNK->BMN\"";
    case gs::fault::equation_too_large: return "split it into equations, one after the other";
    case gs::fault::index_in_no_operand: return "take it out of the output, or give it to an operand";
    case gs::fault::index_repeated: return "name each output index once";
    case gs::fault::sum_not_pending:
      return "leave +partial out, or let its axes shard a summed index of the inputs or, with one input, be "
             "pending in it";
    default: return "change the request";
  }
}
}  // namespace detail

/// Throws if a problem was reported.
inline void refuse(const gs::diagnostic& problem, const gs::mesh_shape& mesh) {
  if (!problem) return;
  gs::diagnostic without_line = problem;  // the line is in this program
  without_line.line = 0;
  throw refusal(gs::describe(without_line) + "; " + detail::remedy(problem.what, mesh));
}

}  // namespace planning
