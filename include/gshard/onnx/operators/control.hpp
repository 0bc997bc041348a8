// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// ONNX's control flow with known conditions and counts: a branch is taken, and loops are unrolled, while importing.

#include <gshard/onnx/node/node_call.hpp>
#include <gshard/onnx/node/numpy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx { namespace operators {

inline constexpr std::int64_t most_iterations = 1024;

inline void if_node(node_call& n) {
  const bool holds = n.known(0).integer(0) != 0;
  const model_graph& yes = n.graph("then_branch");
  const model_graph& no = n.graph("else_branch");
  std::vector<imported_value> made = n.state().run_graph(holds ? yes : no, {});
  for (std::size_t i = 0; i < made.size() && i < n.outputs(); ++i) n.set(i, std::move(made[i]));
}

/// The outputs of all iterations, stacked along a dim.
inline symbol stacked(node_call& n, std::vector<imported_value>& all, int at, bool from_back = false) {
  std::vector<symbol> parts;
  for (imported_value& v : all) parts.push_back(with_dim(tensor_of(n.state(), v), at));
  if (from_back) std::reverse(parts.begin(), parts.end());
  return joined(parts, at);
}

inline void loop_node(node_call& n) {
  const model_graph& body = n.graph("body");
  const std::int64_t most = n.has(0) ? n.known(0).integer(0) : most_iterations + 1;
  bool goes_on = !n.has(1) || n.known(1).integer(0) != 0;
  std::vector<imported_value> states;
  for (std::size_t i = 2; i < n.inputs(); ++i) states.push_back(n.in(i));
  const std::size_t carried = states.size();
  if (body.outputs.size() < carried + 1) throw error("has a body with too few outputs");
  std::vector<std::vector<imported_value>> rows(body.outputs.size() - carried - 1);
  for (std::int64_t i = 0; i < most && goes_on; ++i) {
    if (i == most_iterations) throw error("has more than " + std::to_string(most_iterations) + " iterations, which gshard does not unroll");
    std::vector<imported_value> given{value_of(scalar_integer(i)), value_of(scalar_integer(1, element::boolean))};
    given.insert(given.end(), states.begin(), states.end());
    std::vector<imported_value> made = n.state().run_graph(body, std::move(given));
    if (!made[0].known) throw unknown_value("needs its condition \"" + made[0].name + "\" while the program is made", made[0].name);
    goes_on = made[0].known->integer(0) != 0;
    for (std::size_t k = 0; k < carried; ++k) states[k] = made[1 + k];
    for (std::size_t k = 0; k < rows.size(); ++k) rows[k].push_back(made[1 + carried + k]);
  }
  for (std::size_t k = 0; k < carried; ++k) n.set(k, states[k]);
  for (std::size_t k = 0; k < rows.size(); ++k) {
    if (rows[k].empty()) throw error("has no iteration, and outputs without a shape");
    n.set(carried + k, stacked(n, rows[k], 0), rows[k][0].type);
  }
}

inline void scan_node(node_call& n) {
  if (n.opset() < 9)
    throw error("has opset_import " + std::to_string(n.opset()) + ", in which Scan has a batch dim; gshard has that of version 9");
  const model_graph& body = n.graph("body");
  const auto scanned = std::size_t(n.integer("num_scan_inputs"));
  if (scanned == 0 || scanned > n.inputs()) n.refuse("num_scan_inputs");
  const std::size_t carried = n.inputs() - scanned;
  if (body.outputs.size() < carried) throw error("has a body with too few outputs");
  const std::size_t outputs = body.outputs.size() - carried;
  const auto list = [&](std::string_view name, std::size_t size) {
    std::vector<std::int64_t> all = n.integers(name);
    all.resize(size, 0);
    return all;
  };
  const auto in_axes = list("scan_input_axes", scanned), in_turns = list("scan_input_directions", scanned);
  const auto out_axes = list("scan_output_axes", outputs), out_turns = list("scan_output_directions", outputs);
  std::vector<imported_value> states;
  for (std::size_t i = 0; i < carried; ++i) states.push_back(n.in(i));
  std::vector<std::vector<imported_value>> rows(outputs);
  const std::int64_t steps = n.extents(carried)[std::size_t(node_call::dim(in_axes[0], n.rank(carried)))];
  if (steps > most_iterations) throw error("has " + std::to_string(steps) + " steps, which gshard does not unroll");
  for (std::int64_t i = 0; i < steps; ++i) {
    std::vector<imported_value> given = states;
    for (std::size_t k = 0; k < scanned; ++k) {
      const int at = node_call::dim(in_axes[k], n.rank(carried + k));
      const std::int64_t row = in_turns[k] ? steps - 1 - i : i;
      given.push_back(value_of(without_dim(sliced(n.tensor(carried + k), at, row, row + 1), at), n.type(carried + k)));
    }
    std::vector<imported_value> made = n.state().run_graph(body, std::move(given));
    for (std::size_t k = 0; k < carried; ++k) states[k] = made[k];
    for (std::size_t k = 0; k < outputs; ++k) rows[k].push_back(made[carried + k]);
  }
  for (std::size_t k = 0; k < carried; ++k) n.set(k, states[k]);
  for (std::size_t k = 0; k < outputs; ++k) {
    if (rows[k].empty()) throw error("has no step, and outputs without a shape");
    const int at = node_call::dim(out_axes[k], int(rows[k][0].extents.size()) + 1);
    n.set(carried + k, stacked(n, rows[k], at, out_turns[k] != 0), rows[k][0].type);
  }
}

inline constexpr operator_row control[]{
    {"If", if_node},
    {"Loop", loop_node},
    {"Scan", scan_node},
};

}}}}  // namespace gshard::v0::onnx::operators
