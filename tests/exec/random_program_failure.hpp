// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program_analysis.hpp"
#include "random_program_reference.hpp"

#include <optional>
#include <string>

namespace random_program {

/// The failure of the program on its mesh, or on one device by the definitions of its verbs, or nothing. Throws `ill_formed` if the program
/// is not valid.
inline std::string failure(const recipe& r) {
  const std::optional<analysis> a = analysed(r);
  if (!a) throw on_mesh::ill_formed("its results depend on rounding");
  place on = r.on;
  on.agreement = agreement(r, *a);
  return on_mesh::failure(
      on, inputs_of(r), model_of(r),
      [&](const run_graph::arrays& inputs, const run_graph::arrays& results) { return wrong_results(r, *a, inputs, results); });
}

}  // namespace random_program
