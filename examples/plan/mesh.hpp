// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "refusal.hpp"
#include "scanner.hpp"

#include <gshard/exec/backend/device_group.hpp>

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace planning {

inline std::span<const int> extents_of(const gs::mesh_shape& mesh) { return {mesh.extents.data(), std::size_t(mesh.rank())}; }

/// Parses a mesh from the command line: `x=2,y=4`, major to minor.
inline gs::mesh_shape parse_mesh(std::string_view text) {
  gs::mesh_shape mesh;
  scanner in("mesh", text, "x=2,y=4");
  do {
    if (mesh.rank() == gs::max_axes) in.fail("expected its end, because a mesh has at most 8 axes");
    const std::string_view name = in.axis();
    if (mesh.find(name) >= 0)
      throw refusal("the mesh \"" + std::string(text) + "\" has two axes called \"" + std::string(name) + "\": rename one");
    in.expect("=");
    mesh.push_back(name, int(in.extent(std::numeric_limits<int>::max())));
  } while (in.accept(","));
  in.expect_end();
  try {
    gs::device_count(extents_of(mesh));
  } catch (const gs::error& e) {
    throw refusal(std::string(e.what()) + ": make its extents smaller");
  }
  return mesh;
}

inline std::string text_of(const gs::mesh_shape& mesh) {
  std::string s;
  for (int a = 0; a < mesh.rank(); ++a) s += (a ? "," : "") + std::string(mesh.name(a)) + "=" + std::to_string(mesh.static_extent(a));
  return s;
}

}  // namespace planning
