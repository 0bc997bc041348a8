// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The inputs and outputs of a program that is being traced.

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/base/reason.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/ir/spec.hpp>
#include <gshard/core/program/program_options.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/einsum.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace gshard { inline namespace v0 { namespace detail {

constexpr void begin_program(builder& b, const mesh_shape& mesh, const program_options& options) {
  b.mesh = mesh;
  b.options = options.trace();
  const dims& known = options.compile.known;
  for (std::size_t i = 0; i < known.count; ++i)
    if (const auto [letter, extent] = known.entries[i]; extent < 0) b.fail_range("extent", {&letter, 1}, extent);
  if (const char letter = known.twice) b.fail_range("extent", {&letter, 1});
}

/// Adds an input with these dims. `spec`: its sharding; unless `has_spec`, propagation decides it.
constexpr symbol add_input(builder& b, std::string_view letters, dtype type, bool column_major, bool has_spec, const named_sharding& spec) {
  const tensor_name name(letters);
  const dim_list dims = b.dims_of(letters, name.view());
  const symbol s{&b, b.add_value(column_major ? dims.reversed() : dims, type)};
  if (has_spec && spec.rank != s.rank()) b.fail(fault::rank_mismatch, name.view(), {}, s.rank(), spec.rank);
  if (has_spec && !b.failed()) {
    const sharding given = b.resolve(spec, name.view());
    if (given.partial && !has_sums(type)) b.fail_type("in", name.view(), type, types_with(has_sums));
    b.program.at(s.id).layout = column_major ? given.reversed() : given;
  }
  b.program.inputs.push_back({.name = name, .value = s.id, .is_column_major = column_major});
  return column_major ? emit_reversed(b, s, name.view()) : s;
}

/// True if a model may return it.
template <class Result>
inline constexpr bool is_output = std::is_void_v<Result> || std::is_base_of_v<symbol, Result>;
template <class... Results>
inline constexpr bool is_output<std::tuple<Results...>> = (std::is_base_of_v<symbol, Results> && ...);
template <std::size_t N>
inline constexpr bool is_output<std::array<symbol, N>> = true;

template <class Result>
constexpr bool check_result() {
  static_assert(holds<is_output<Result> || is_refused<Result>, actual_type<Result>>,
                "gshard: a model returns a tensor, several as a std::tuple or a std::array, or nothing");
  return is_output<Result> && !is_refused<Result>;
}

constexpr void add_outputs(builder& b, symbol s) {
  if (!b.has(s)) return;
  bool is_loss = false;
  for (const std::int32_t checked : b.checked_losses) is_loss = is_loss || checked == s.id;
  b.program.outputs.push_back({tensor_name("result"), s.id, is_loss});
}
template <class... Symbols>
constexpr void add_outputs(builder& b, const std::tuple<Symbols...>& t) {
  std::apply([&](const auto&... s) { (add_outputs(b, s), ...); }, t);
}
template <std::size_t N>
constexpr void add_outputs(builder& b, const std::array<symbol, N>& list) {
  for (const symbol& s : list) add_outputs(b, s);
}

/// Replaces the annotations of the inputs, then of the parameters.
constexpr void set_layouts(graph& g, list_view<sharding> layouts) {
  const std::size_t inputs = g.inputs.size();
  for (std::size_t i = 0; i < layouts.size(); ++i)
    g.at(i < inputs ? g.inputs[i].value : g.parameters[i - inputs].value).layout = layouts[i];
}

}}}  // namespace gshard::v0::detail
