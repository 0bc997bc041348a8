// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The text of a tensor, as plans print it: "f32[G@expert,S,M]".

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/dims_text.hpp>
#include <gshard/core/ir/dtype.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/ir/sharding.hpp>
#include <gshard/core/program/program_options.hpp>

#include <string>
#include <string_view>

#if GSHARD_HAS_BODIES
#include <gshard/exec/process/error.hpp>
#endif

namespace gshard { inline namespace v0 {

/// A tensor as text, as plans print it: `"f32[G@expert,S,M]"`, `"f32[B,H]+x"`, `"i32[GS]"`, `"f64[]"`. In the brackets are dims and
/// sharding as in `in<"G@expert,S,M">`. Letters alone leave the sharding to propagation. A text without brackets is float: `"GSM"`.
/// Throws `gshard::error` if a text is not a tensor.
/// @see dims_text
struct tensor_text {
  dtype type = dtype::f32;
  dims_text dims;
  bool is_column_major = false;

  tensor_text(std::string_view text);
  tensor_text(const char* text) : tensor_text(std::string_view(text)) {}
  tensor_text(const std::string& text) : tensor_text(std::string_view(text)) {}
  /// `{"f32[BM]", column_major{}}`, as `in<"BM", column_major>`.
  tensor_text(std::string_view text, gshard::column_major) : tensor_text(text) { is_column_major = true; }
};

namespace detail {
/// The partition spec of a sharding on a mesh. `order`: its device order, which must outlive the spec.
named_sharding spec_of_sharding(const sharding& layout, const mesh_shape& mesh, list_view<int> order);
}  // namespace detail

#if GSHARD_HAS_BODIES

GSHARD_INLINE tensor_text::tensor_text(std::string_view text) {
  const auto fail = [&](const std::string& why) { throw error("tensor: \"" + std::string(text) + "\" " + why); };
  std::string stated(text);
  if (const std::size_t open = text.find('['); open != text.npos) {
    const std::size_t close = text.find(']', open);
    if (close == text.npos || (close + 1 < text.size() && text[close + 1] != '+'))
      fail("is not the text of a tensor, such as \"f32[B@data,M]\"");
    int t = 0;
    while (t < element_types && name(dtype(t)) != text.substr(0, open)) ++t;
    if (t == element_types) fail("has none of the element types " + std::string(element_names(all_elements).view()));
    type = dtype(t);
    stated = std::string(text.substr(open + 1, close - open - 1)) + std::string(text.substr(close + 1));
  }
  dims = dims_text(stated);
  if (!dims.has_letters())
    fail("has other dims than at most 8 letters, or the same with commas between them and mesh axes: GSM, or G@expert,S,M");
}

namespace detail {

GSHARD_INLINE named_sharding spec_of_sharding(const sharding& layout, const mesh_shape& mesh, list_view<int> order) {
  named_sharding spec;
  spec.rank = layout.rank;
  spec.order = order;
  for (int d = 0; d < layout.rank; ++d)
    for (int i = 0; i < layout[d].size(); ++i) spec.add(mesh.name(layout[d][i]), d);
  for (int a = 0; a < mesh.rank(); ++a)
    if (layout.is_partial(a)) spec.add(mesh.name(a), -1);
  return spec;
}

}  // namespace detail

#endif

}}  // namespace gshard::v0
