// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "facts.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace planning {

namespace detail {

inline nlohmann::ordered_json json_of(const tensor_facts& t, const gs::mesh_shape& mesh) {
  return {{"shape", text_of(t.whole, mesh)}, {"extents", t.whole.extents}, {"local", t.local}};
}
inline nlohmann::ordered_json json_of(const std::vector<tensor_facts>& tensors, const gs::mesh_shape& mesh) {
  auto list = nlohmann::ordered_json::array();
  for (const tensor_facts& t : tensors) list.push_back(json_of(t, mesh));
  return list;
}
inline nlohmann::ordered_json json_of(const step_facts& s, const gs::mesh_shape& mesh) {
  auto axes = nlohmann::ordered_json::array(), moves = nlohmann::ordered_json::array();
  const auto dim = [](int at) { return at < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(at); };
  for (const int a : s.axes) axes.push_back(mesh.name(a));
  for (const axis_move& m : s.moves)
    moves.push_back({{"axis", mesh.name(m.axis)},
                     {"from_dim", dim(m.from)},
                     {"to_dim", dim(m.to)},
                     {"from_partial", m.from == axis_move::sums},
                     {"to_partial", m.to == axis_move::sums},
                     {"halo", m.halo}});
  nlohmann::ordered_json j{{"op", s.called},                {"axes", axes},           {"moves", moves},
                           {"in", json_of(s.in, mesh)},     {"out", json_of(s.out, mesh)},
                           {"bytes_received", s.bytes},     {"flops", s.flops}};
  if (s.groups > 0) {
    j["groups"] = {{"count", s.groups}, {"size", s.group_size}};
    if (!s.members.empty()) j["groups"]["devices"] = s.members;
  }
  return j;
}

}  // namespace detail

/// The content of to_text as JSON. A dim is null if the axis shards none. "output" is the first of "outputs".
inline nlohmann::ordered_json to_json(const plan_facts& f) {
  nlohmann::ordered_json j;
  auto& mesh = j["mesh"] = nlohmann::ordered_json::array();
  for (int a = 0; a < f.mesh.rank(); ++a) mesh.push_back({{"axis", f.mesh.name(a)}, {"extent", f.mesh.static_extent(a)}});
  j["inputs"] = detail::json_of(f.inputs, f.mesh);
  auto& steps = j["steps"] = nlohmann::ordered_json::array();
  for (const step_facts& s : f.steps) steps.push_back(detail::json_of(s, f.mesh));
  j["output"] = detail::json_of(f.outputs[0], f.mesh);
  j["outputs"] = detail::json_of(f.outputs, f.mesh);
  j["total"] = {{"steps", f.steps.size()}, {"bytes_received", f.bytes}, {"flops", f.flops}};
  return j;
}

}  // namespace planning
