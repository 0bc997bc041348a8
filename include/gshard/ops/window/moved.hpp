// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Operations that move elements along dims: strided_slice, pad, reverse, roll and permute.
//
// Each element of a result is an element of the operand, or a constant. When the dim is sharded: one exchange of the missing elements (the
// paper's halo exchange, arXiv 2006.16668 section 3.3.2).

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/grad/differentiator.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/ir/window.hpp>
#include <gshard/core/trace/builder.hpp>

#include <cstddef>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation strided_slice{.id = 28, .name = "strided_slice", .elements = all_elements, .by_size = true, .only_moves = true,
    .repeatable = true, .windowed = 1, .linear = linearity::one_operand};
inline constexpr operation pad{.id = 29, .name = "pad", .elements = all_elements, .by_size = true, .only_moves = true, .repeatable = true,
    .windowed = 1, .linear = linearity::one_operand};
inline constexpr operation reverse{.id = 30, .name = "reverse", .elements = all_elements, .by_size = true, .only_moves = true,
    .repeatable = true, .windowed = 1, .linear = linearity::one_operand};
inline constexpr operation roll{.id = 31, .name = "roll", .elements = all_elements, .by_size = true, .only_moves = true, .repeatable = true,
    .windowed = 1, .linear = linearity::one_operand};
inline constexpr operation permute{.id = 32, .name = "permute", .elements = all_elements, .by_size = true, .only_moves = true,
    .windowed = 1, .linear = linearity::one_operand};
}  // namespace op

namespace detail {

constexpr void moved_gradient(differentiator& d, const node& n);
inline constexpr operation_rules strided_slice_rules{.of = op::strided_slice, .gradient = moved_gradient};
inline constexpr operation_rules pad_rules{.of = op::pad, .gradient = moved_gradient};
inline constexpr operation_rules reverse_rules{.of = op::reverse, .gradient = moved_gradient};
inline constexpr operation_rules roll_rules{.of = op::roll, .gradient = moved_gradient};
inline constexpr operation_rules permute_rules{.of = op::permute, .gradient = moved_gradient};

/// op::strided_slice, pad, reverse, roll, permute: out[i] = x through the windows, or `fill` where they read nothing.
constexpr symbol emit_moved(const operation_rules& kind, symbol x, const dim_list& dims, const dim_list& windows,
                            double fill = 0, bool inside = false) {
  builder& b = *x.owner;
  if (!b.failed() && !can_hold(x.get().type, fill))
    b.fail_type(name(kind.of), 0, x.get().type, types_with([&](dtype t) { return can_hold(t, fill); }));
  if (b.failed()) return b.nothing();
  sharding_rule rule;
  rule.in[0] = rule.out[0] = counting(x.rank());
  rule.windows = windows;
  return {&b, b.add_node(b.use(kind), {x.id}, rule, {.inside = inside, .fill = fill}, {{dims, x.get().type}})};
}

/// The same if only one dim is read through a window.
constexpr symbol emit_moved(const operation_rules& kind, symbol x, int at, const window& w, double fill = 0, bool inside = false) {
  builder& b = *x.owner;
  dim_list dims = x.get().dims, windows;
  dims.set(at, w.over);
  for (int d = 0; d < x.rank(); ++d) windows.push_back(d == at ? b.row_of(w) : 0);
  return emit_moved(kind, x, dims, windows, fill, inside);
}

constexpr int dim_of_part(int d) { return d; }
template <class Part>
constexpr int dim_of_part(const Part& part) {
  return part.dim;
}
/// emit_moved with a window for the dim of each part, made by make_window(part, dim of the program). `verb`: its name in faults.
template <class Part, class MakeWindow>
constexpr symbol emit_moved_dims(const operation_rules& kind, std::string_view verb, symbol x, list_view<Part> parts,
                                 const MakeWindow& make_window, double fill = 0, bool inside = false) {
  builder& b = *x.owner;
  if (b.failed()) return b.nothing();
  if (parts.empty()) return x;
  dim_list dims = x.get().dims, windows;
  for (int d = 0; d < x.rank(); ++d) windows.push_back(0);
  for (const Part& part : parts) {
    const int at = dim_of_part(part);
    if (!check_dim(x, at, verb)) return b.nothing();
    if (windows[at] != 0) b.fail_range(verb, "dim", at);
    const window w = make_window(part, dims[at]);
    if (b.failed()) return b.nothing();
    dims.set(at, w.over);
    windows.set(at, b.row_of(w));
  }
  return emit_moved(kind, x, dims, windows, fill, inside);
}

/// The gradient of the result through the inverse windows. Slicing and padding are each other's gradient.
constexpr void moved_gradient(differentiator& d, const node& n) {
  builder& b = d.owner();
  const symbol x = d.in(n, 0), dy = d.gradient(n);
  dim_list windows;
  for (int k = 0; k < x.rank(); ++k) {
    const int w = n.rule.windows[k];
    windows.push_back(w ? b.row_of(b.program.windows[std::size_t(w)].inverse(x.get().dims[k])) : 0);
  }
  const operation_rules& back = n.kind == op::pad             ? strided_slice_rules
                                : n.kind == op::strided_slice ? pad_rules
                                                              : b.program.rules_of(n.kind);
  d.add(n.input(0), emit_moved(back, dy, x.get().dims, windows));
}

}  // namespace detail

}}  // namespace gshard::v0
