// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Concatenates tensors along a dim: concat.

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/grad/differentiator.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/ir/window.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/ops/window/moved.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace gshard { inline namespace v0 {

namespace op {
inline constexpr operation concat{.id = 33, .name = "concat", .elements = all_elements, .by_size = true, .only_moves = true,
    .repeatable = true, .windows_of_operands = true};
}  // namespace op

namespace detail {

constexpr void concat_gradient(differentiator& d, const node& n);
inline constexpr operation_rules concat_rules{.of = op::concat, .gradient = concat_gradient};

/// Each operand gets its slice.
constexpr void concat_gradient(differentiator& d, const node& n) {
  const symbol dy = d.gradient(n);
  const int at = n.attr.dim;
  for (int i = 0; i < n.inputs; ++i) {
    if (!d.wants(n, i)) continue;
    const window w = d.owner().program.windows[std::size_t(n.rule.windows[i])].inverse(d.in(n, i).get().dims[at]);
    d.add(n.input(i), emit_moved(strided_slice_rules, dy, at, w));
  }
}

}  // namespace detail

/// concat({a, b, ...}, dim): the operands one after the other along one dim. At most 7.
/// Shapes: [..., N_i, ...] -> [..., sum of N_i, ...].
/// Communicates: nothing, or, if the dim is sharded, for every operand the elements that blocks of the result lack.
/// Compile time: ranks, dims and element types.
/// Throws: nothing.
/// @see slice, pad
constexpr symbol concat(list_view<symbol> parts, int dim) {
  builder& b = *parts[0].owner;
  if (!detail::check_dim(parts[0], dim, "concat")) return b.nothing();
  if (parts.size() > std::size_t(sharding_rule::most_in))
    b.fail(fault::rank_mismatch, "concat", {}, sharding_rule::most_in, int(parts.size()));
  const value& first = parts[0].get();
  dim_list dims = first.dims;
  for (std::size_t i = 1; i < parts.size() && b.has(parts[i]); ++i) {
    const value& v = parts[i].get();
    if (v.type != first.type) b.fail_type("concat", int(i), v.type, only(first.type));
    else if (v.rank() != first.rank()) b.fail(fault::rank_mismatch, "concat", {}, first.rank(), v.rank());
    else
      for (int d = 0; d < v.rank(); ++d)
        if (d != dim && !b.same_extent(v.dims[d], first.dims[d])) b.fail(fault::dims_differ, "concat", {}, int(i), d);
    if (!b.failed()) dims.set(dim, b.linear_dim(dims[dim], 1, parts[i].get().dims[dim], 1, 0));
  }
  if (b.failed()) return b.nothing();
  sharding_rule rule;
  rule.out[0] = detail::counting(first.rank());
  std::array<std::int32_t, sharding_rule::most_in> ids{};
  int before = -1;  // a dim whose extent is the sum of the operands before this one
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int own = parts[i].get().dims[dim];
    window w;
    w.over = std::int16_t(dims[dim]);
    w.low_dim = std::int16_t(before);
    w.plus_low = -1;
    rule.in[i] = rule.out[0];
    rule.windows.push_back(b.row_of(w));
    ids[i] = parts[i].id;
    before = before < 0 ? own : b.linear_dim(before, 1, own, 1, 0);
  }
  return {&b, b.add_node(b.use(detail::concat_rules), list_view(ids.data(), parts.size()), rule, {.dim = dim},
                         {{dims, parts[0].get().type}})};
}
constexpr symbol concat(std::initializer_list<symbol> parts, int dim) { return concat(list_view(parts.begin(), parts.size()), dim); }
/// concat<1>(a, b, ...): the same, as on tensors outside of programs.
template <int Dim, class... Symbols>
  requires(std::derived_from<Symbols, symbol> && ...)
constexpr symbol concat(here first, Symbols... rest) {
  return concat({first, rest...}, Dim);
}

GSHARD_TAKES_NUMBERS(concat, (detail::call<2, detail::list_of<symbol>, int>::fits<Given...>), 1, 1, int,
                     (detail::tensors_of_any_kind<1, sharding_rule::most_in>::fits<Given...>),
                     "concat({a, b, ...}, dim) takes a list of tensors of a program and a dim")
template <class... Given>
constexpr auto concat(std::initializer_list<detail::anything>, const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: concat({a, b, ...}, dim) takes a list of tensors of a program and a dim");
  return detail::refused(given...);
}

}}  // namespace gshard::v0
