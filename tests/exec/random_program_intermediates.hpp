// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program_analysis.hpp"

#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <vector>

// Gradients with respect to computed tensors: each equals the gradient of the program that has this tensor as an input.
namespace random_program {

namespace detail {

/// The tensors of all steps. If `cut` is the number of a step, its tensor becomes a further input of the program.
inline symbols tensors_of(const recipe& r, gs::builder& b, std::span<const symbol> given, int cut = -1) {
  symbols made;
  std::size_t inputs = 0;
  for (const step& s : r.steps) {
    symbols operands;
    for (const int i : s.in) operands.push_back(made[std::size_t(i)]);
    made.push_back(s.what == verb::input ? given[inputs++] : call(b, s, operands));
    if (b.failed() || int(made.size()) != cut + 1) continue;
    const gs::value computed = made.back().get();
    made.back() = {&b, b.add_value(computed.dims, computed.type)};
    b.program.inputs.push_back({gs::tensor_name("cut"), made.back().id});
  }
  return made;
}
inline symbols chosen(const symbols& all, const std::vector<int>& which) {
  symbols list;
  for (const int i : which) list.push_back(all[std::size_t(i)]);
  return list;
}
/// The gradients of the loss with respect to these steps, then their tensors if requested.
inline run_graph::model gradients_of(const recipe& r, const std::vector<int>& steps, bool with_tensors, int cut = -1) {
  return [&r, steps, with_tensors, cut](const gs::parameter_scope& m, std::span<const symbol> x) {
    const symbols made = tensors_of(r, m.owner(), x, cut);
    symbols results = m.owner().failed() ? symbols() : on_mesh::gradients_of(chosen(made, r.loss), chosen(made, steps));
    if (with_tensors && !m.owner().failed())
      for (const symbol& s : chosen(made, steps)) results.push_back(s);
    return results;
  };
}

}  // namespace detail

/// The failure of gradients with respect to computed tensors, or nothing. `compared`: counts them.
inline std::string failure_of_intermediates(const recipe& r, std::size_t& compared) {
  const std::optional<analysis> a = analysed(r);
  if (!a) throw on_mesh::ill_formed("its results depend on rounding");
  if (r.loss.empty()) return {};
  std::vector<int> computed;
  bool infinite = false;
  for (int v = 0; v < int(r.steps.size()); ++v) {
    infinite = infinite || a->about(v).of.infinite;
    if (r.steps[std::size_t(v)].what != verb::input && a->about(v).type == gs::dtype::f64) computed.push_back(v);
  }
  if (computed.empty()) return {};
  const char how = infinite ? on_mesh::finite_alike : on_mesh::nearly;

  std::vector<on_mesh::input> inputs = inputs_of(r);
  std::vector<run_graph::input> letters;
  for (const on_mesh::input& i : inputs) letters.push_back(i.what);
  const auto on_one_device = [&](const run_graph::model& f, const run_graph::arrays& sources) {
    const run_graph::traced t = on_mesh::without_axes(run_graph::trace(letters, f));
    return run_graph::run(t, run_graph::serial(t, r.on.dims), sources);
  };
  const auto right = [&](const run_graph::arrays& sources, const run_graph::arrays& results) -> std::string {
    std::mt19937 gen(r.seed);
    for (int tries = 0; tries < 4; ++tries) {
      const std::size_t k = gen() % computed.size();
      const int v = computed[k];
      run_graph::arrays with_cut = sources;
      with_cut.push_back(results[computed.size() + k]);
      const run_graph::array expected = on_one_device(detail::gradients_of(r, {v}, false, v), with_cut)[0];
      const run_graph::array alone = on_one_device(detail::gradients_of(r, {v}, false), sources)[0];
      for (const run_graph::array* g : {&results[k], &alone})
        if (const std::string said = on_mesh::difference(*g, expected, how); !said.empty())
          return "the gradient with respect to v" + std::to_string(v) + (g == &alone ? " alone: " : ": ") + said;
      ++compared;
    }
    return {};
  };
  place on = r.on;
  on.agreement = std::string(2 * computed.size(), how);
  for (std::size_t k = 0; k < computed.size(); ++k)
    if (a->about(computed[k]).of.blurred) on.agreement[computed.size() + k] = on_mesh::finite_alike;
  return on_mesh::failure(on, inputs, detail::gradients_of(r, computed, true), right);
}

}  // namespace random_program
