// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A mesh that is known at run time: "data=2,expert".

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/ir/mesh.hpp>

#include <string>
#include <string_view>

#if GSHARD_HAS_BODIES
#include <gshard/exec/process/error.hpp>

#include <charconv>
#endif

namespace gshard { inline namespace v0 {

/// A mesh as text or as the shape of a mesh: `"data=2,expert"` are the axes of `mesh<axis<"data", 2>, axis<"expert">>`. An axis without an
/// extent gets it from the cluster.
/// Throws `gshard::error` if a text is not a mesh.
struct any_mesh : mesh_shape {
  any_mesh(std::string_view text);
  any_mesh(const char* text) : any_mesh(std::string_view(text)) {}
  any_mesh(const std::string& text) : any_mesh(std::string_view(text)) {}
  any_mesh(const mesh_shape& shape) : mesh_shape(shape) {}
};

#if GSHARD_HAS_BODIES

GSHARD_INLINE any_mesh::any_mesh(std::string_view text) {
  const auto fail = [&](const std::string& why) { throw error("mesh: \"" + std::string(text) + "\" " + why); };
  for (std::string_view rest = text; !text.empty();) {
    const std::string_view one = rest.substr(0, rest.find(',')), name = one.substr(0, one.find('='));
    int extent = dynamic;
    if (name.empty() || name.find_first_of("@?+ ") != name.npos || !axis_name::fits(name))
      fail("is not a list of axes such as \"data=2,expert\", with names of at most 23 characters, without '@', '?', '+' and spaces");
    if (find(name) >= 0) fail("has two axes called \"" + std::string(name) + "\"");
    if (rank() == max_axes) fail("has more than 8 axes");
    if (name.size() < one.size()) {
      const char *const first = one.data() + name.size() + 1, *const last = one.data() + one.size();
      const auto [end, problem] = std::from_chars(first, last, extent);
      if (problem != std::errc() || end != last || extent < 1) fail("has an extent that is not a positive number: " + std::string(one));
    }
    push_back(name, extent);
    if (one.size() == rest.size()) break;
    rest.remove_prefix(one.size() + 1);
  }
  if (static_devices() > max_devices) fail("has more than 2147483647 devices");
}

#endif

}}  // namespace gshard::v0
