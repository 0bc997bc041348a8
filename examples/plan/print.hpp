// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "facts.hpp"

#include <gshard/sim/report/describe.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace planning {

/// "4.7 KiB (4800 bytes)"
inline std::string bytes_text(std::int64_t bytes) {
  const std::string exact = std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  return bytes < 1024 ? exact : gs::describe_bytes(bytes) + " (" + exact + ")";
}

namespace detail {

inline std::string place_text(int at) {
  return at == axis_move::copies ? "copies" : at == axis_move::sums ? "sums" : "dim " + std::to_string(at);
}

/// "dim 0 -> dim 1", "dim 0 halo"; prefixed with the axes if they move differently.
inline std::string moves_text(const std::vector<axis_move>& moves, const gs::mesh_shape& mesh) {
  std::vector<std::pair<std::string, std::string>> ways;  // the move, and its axes
  for (const axis_move& m : moves) {
    const std::string way = (m.halo && m.from == m.to ? "" : place_text(m.from) + " -> ") + place_text(m.to) + (m.halo ? " halo" : "");
    const auto at = std::find_if(ways.begin(), ways.end(), [&](const auto& w) { return w.first == way; });
    if (at == ways.end()) ways.emplace_back(way, mesh.name(m.axis));
    else at->second += "," + std::string(mesh.name(m.axis));
  }
  std::string s;
  for (const auto& [way, axes] : ways) s += (s.empty() ? "" : "; ") + (ways.size() == 1 ? way : axes + " " + way);
  return s;
}

inline std::string axes_text(const std::vector<int>& axes, const gs::mesh_shape& mesh) {
  std::string s;
  for (const int a : axes) s += (s.empty() ? " over " : ",") + std::string(mesh.name(a));
  return s;
}

/// "groups {0,2} {1,3}", or "8 groups of 4"
inline std::string groups_text(const step_facts& s) {
  if (s.members.empty()) return std::to_string(s.groups) + (s.groups == 1 ? " group of " : " groups of ") + std::to_string(s.group_size);
  std::string text = "groups";
  for (const std::vector<int>& group : s.members) {
    text += " {";
    for (std::size_t i = 0; i < group.size(); ++i) text += (i ? "," : "") + std::to_string(group[i]);
    text += "}";
  }
  return text;
}

inline std::string shapes_text(const std::vector<tensor_facts>& tensors, const gs::mesh_shape& mesh) {
  std::string s = tensors.empty() ? "nothing" : "";
  for (const tensor_facts& t : tensors) s += (s.empty() ? "" : " ") + text_of(t.whole, mesh);
  return s;
}
inline std::string locals_text(const std::vector<tensor_facts>& tensors) {
  std::string s;
  for (const tensor_facts& t : tensors) s += (s.empty() ? "" : " ") + text_of(t.local);
  return s;
}

using line = std::array<std::string, 6>;

inline line line_of(const step_facts& s, const gs::mesh_shape& mesh) {
  return {s.called + axes_text(s.axes, mesh),
          moves_text(s.moves, mesh),
          shapes_text(s.in, mesh) + " -> " + shapes_text(s.out, mesh),
          "local " + locals_text(s.in) + (s.in.empty() ? "-> " : " -> ") + locals_text(s.out),
          s.groups > 0 ? "receives " + bytes_text(s.bytes) : s.flops > 0 ? "computes " + std::to_string(s.flops) + " flops" : "",
          s.groups > 0 ? groups_text(s) : ""};
}

}  // namespace detail

/// Prints a plan: one line per step, with columns two spaces apart, then the outputs and the totals per device.
inline std::string to_text(const plan_facts& f) {
  std::vector<detail::line> lines;
  for (const step_facts& s : f.steps) lines.push_back(detail::line_of(s, f.mesh));
  std::array<std::size_t, std::tuple_size_v<detail::line>> width{};
  for (const detail::line& l : lines)
    for (std::size_t c = 0; c < l.size(); ++c) width[c] = std::max(width[c], l[c].size());
  std::string text;
  for (const detail::line& l : lines) {
    std::string row;
    for (std::size_t c = 0; c < l.size(); ++c)
      if (width[c] > 0) row += l[c] + std::string(width[c] - l[c].size() + 2, ' ');
    row.resize(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  for (const tensor_facts& o : f.outputs) text += "output  " + text_of(o.whole, f.mesh) + "  local " + text_of(o.local) + "\n";
  text += "total  " + std::to_string(f.steps.size()) + (f.steps.size() == 1 ? " step" : " steps") + "  receives " +
          bytes_text(f.bytes) + " per device  computes " + std::to_string(f.flops) + " flops per device\n";
  return text;
}

}  // namespace planning
