// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Searches shardings of a model's inputs and initializers: find_shardings.

#include <gshard/exec/process/diagnostic.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/onnx/program/import_program.hpp>
#include <gshard/onnx/program/write_annotations.hpp>
#include <gshard/sim/search/shard_choice.hpp>
#include <gshard/sim/search/shard_search.hpp>

#include <cstddef>
#include <string>
#include <utility>

namespace gshard { inline namespace v0 { namespace onnx {

struct found_shardings {
  shard_choice choice;
  tensor_shardings tensors;  ///< Of inputs and initializers, by their names in the model.
};

/// The shardings with which an imported program takes the least time on a machine. Those that are given are kept. The options that plans
/// are compiled with are those of the program.
/// Throws `gshard::error` if no plan fits the machine.
/// @see search_shardings, annotated_model
inline found_shardings find_shardings(const imported_program& p, search_options options) {
  options.compile = p.program.options();
  found_shardings found{search_shardings(p.program.graph(), p.program.mesh(), options), {}};
  if (found.choice.problem) throw error("no shardings were found: " + describe(found.choice.problem));
  for (std::size_t i = 0; i < found.choice.tensors.size(); ++i) {
    const layout_choice& t = found.choice.tensors[i];
    if (!t.is_parameter) {
      found.tensors[p.inputs[i].name] = t.layout;
      continue;
    }
    for (const stored_tensor& s : p.stored)
      if (t.name.view() == s.parameter && s.parts.size() == 1 && !s.parts[0].name.empty()) found.tensors[s.parts[0].name] = t.layout;
  }
  return found;
}

}}}  // namespace gshard::v0::onnx
