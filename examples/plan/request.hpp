// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mesh.hpp"
#include "refusal.hpp"
#include "shape.hpp"

#include <gshard/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace planning {

/// A request to plan: tensors, and an operation between them, written with the verbs of the library.
struct request {
  struct operand {
    shape is;
    gs::dtype type = gs::dtype::f32;
    /// For int32: the ids are less than this.
    std::int64_t below = 0;
  };
  gs::mesh_shape mesh;
  std::vector<operand> inputs;
  /// The sharding of all results. Without it, the planner chooses the cheapest.
  std::optional<shape> output;
  /// Without `output`: a partial sum may stay pending.
  bool keep_partial = false;
  /// Einsums loop over operands and sums of more bytes per device.
  std::int64_t loop_above = gs::compile_options{}.loop_bytes;
  /// For a check: the result depends on the order of rounding, for any inputs.
  bool rounds = false;
  /// For a check: inputs whose products are exact, instead of inputs whose sums are exact.
  bool multiplies = false;
  std::function<std::vector<gs::symbol>(gs::builder&, std::span<const gs::symbol>)> body;
};

/// A plan that was made at run time, and its extents.
struct planned {
  gs::plan_tables tables;
  gs::extents sizes;

  gs::plan_view view() const { return tables.view(); }
  const gs::value& at(std::int32_t v) const { return tables.values[std::size_t(v)]; }
};

namespace detail {

inline std::int64_t elements_of(const std::vector<std::int64_t>& extents) {
  std::int64_t n = 1;
  for (const std::int64_t e : extents) n *= e;
  return n;
}

/// Refuses tensors whose bytes cannot be counted.
inline void check_size(const shape& s, const gs::mesh_shape& mesh) {
  gs::byte_count bytes(gs::size_of(gs::dtype::f64));
  for (const std::int64_t e : s.extents) bytes.times(e);
  if (!bytes.is_countable())
    throw refusal("the shape \"" + text_of(s, mesh) + "\" is too large to count its bytes: make its extents smaller");
}

/// The sharding of a shape, as a layout of a program.
inline gs::sharding layout_in(gs::builder& b, const shape& s) {
  gs::sharding layout = s.layout;
  layout.order = s.order.empty() ? std::uint8_t(0) : b.order_of(s.order);
  return layout;
}
/// Annotates the result with the sharding `wanted`. Its producer leaves the same partial sums pending.
inline gs::symbol lay_out(gs::symbol x, const shape& wanted) {
  gs::value& made = x.owner->program.at(x.id);
  if (made.producer >= 0) made.layout.partial = wanted.layout.partial;
  gs::builder& b = *x.owner;
  gs::named_sharding named{.rank = wanted.rank(), .order = wanted.order};
  for (int d = 0; d < wanted.rank(); ++d)
    for (int i = 0; i < wanted.layout[d].size(); ++i) named.add(b.mesh.name(wanted.layout[d][i]), d);
  const gs::symbol y = gs::annotate(x, named);
  if (wanted.layout.partial && !b.failed()) b.program.at(y.id).layout = layout_in(b, wanted);  // annotate accepts only complete tensors
  return y;
}

/// "ac->a": the equation that keeps these dims of a tensor, in this order, and reduces all others.
inline std::string equation_of(int rank, const std::vector<int>& kept) {
  std::string text;
  for (int d = 0; d < rank; ++d) text += char('a' + d);
  text += "->";
  for (const int d : kept) text += char('a' + d);
  return text;
}

/// Checks that --out has the extents that the inputs give.
inline void check_output(const shape& output, const shape& made, const gs::mesh_shape& mesh) {
  gs::diagnostic problem;
  const std::string text = text_of(output, mesh);
  if (output.rank() != made.rank()) problem.report(gs::fault::rank_mismatch, text, {}, made.rank(), output.rank());
  if (problem && made.rank() == 0) throw refusal("the result has no dims: write --out scalar in place of \"" + text + "\"");
  refuse(problem, mesh);
  for (std::size_t d = 0; d < made.extents.size(); ++d)
    if (output.extents[d] != made.extents[d])
      throw refusal("dim " + std::to_string(d) + " of the output \"" + text + "\" has extent " + std::to_string(made.extents[d]) +
                    " by the inputs: give it that");
}

inline shape shape_of(const gs::value& v, const gs::extents& sizes, gs::list_view<int> orders) {
  shape s{{}, v.layout};
  s.layout.order = 0;
  if (v.layout.order) {
    const gs::list_view<int> order = gs::device_orders{orders, int(sizes.devices(sizes.known_axes))}[v.layout.order];
    s.order.assign(order.begin(), order.end());
  }
  for (int d = 0; d < v.rank(); ++d) s.extents.push_back(sizes.dim(v.dims[d]));
  return s;
}

inline gs::extents bind(gs::list_view<gs::dim> dims, const gs::mesh_shape& mesh) {
  gs::plan_view p{};
  p.dims = dims;
  return p.bind({}, extents_of(mesh));
}

/// An operand whose dims are identified by their extents, across all tensors.
inline gs::symbol add_input(gs::builder& b, const request::operand& o, const gs::mesh_shape& mesh) {
  check_size(o.is, mesh);
  gs::dim_list dims;
  for (const std::int64_t e : o.is.extents) dims.push_back(b.fixed_dim(e));
  const std::int32_t id = b.add_value(dims, o.type);
  b.program.at(id).layout = layout_in(b, o.is);
  b.program.inputs.push_back({gs::tensor_name("in" + std::to_string(b.program.inputs.size())), id});
  return {&b, id};
}

/// The shape of the result. Refuses an empty or too large one.
inline shape shape_made(const gs::builder& b, gs::symbol x) {
  shape made = shape_of(x.get(), bind(b.program.dims, b.mesh), b.program.orders);
  for (int d = 0; d < made.rank(); ++d)
    if (made.extents[std::size_t(d)] < 1)
      throw refusal("dim " + std::to_string(d) + " of the result is empty: make the window or range smaller, or what it reads larger");
  check_size(made, b.mesh);
  return made;
}

}  // namespace detail

/// Traces, propagates, partitions and schedules, all at run time. Extents need not be multiples of the axes that shard them. `observer`: as
/// for `gshard::compile`. Throws `refusal` if the request has no plan.
template <class Observer = decltype(gs::no_observer)>
planned make_plan(const request& r, const Observer& observer = gs::no_observer) {
  gs::builder b;
  b.mesh = r.mesh;
  std::vector<gs::symbol> inputs;
  for (const request::operand& o : r.inputs) inputs.push_back(detail::add_input(b, o, r.mesh));
  std::vector<gs::symbol> results = r.body(b, inputs);
  refuse(b.program.problem, r.mesh);
  for (gs::symbol& result : results) {
    const shape made = detail::shape_made(b, result);
    if (r.output) {
      detail::check_output(*r.output, made, r.mesh);
      result = detail::lay_out(result, *r.output);
    }
    b.program.outputs.push_back({gs::tensor_name("result"), result.id});
  }
  gs::compile_options options;
  options.uneven = true;
  options.loop_bytes = r.loop_above;
  options.partial_outputs = r.output ? r.output->layout.partial != 0 : r.keep_partial;
  planned p;
  p.tables = gs::compile(b.program, r.mesh, options, observer);
  if (p.tables.problem.what == gs::fault::sum_not_pending) p.tables.problem.subject = gs::tensor_name(text_of(*r.output, r.mesh));
  refuse(p.tables.problem, r.mesh);
  p.sizes = detail::bind(p.tables.dims, r.mesh);
  for (const gs::value& v : p.tables.values)
    if (!gs::is_countable(v, p.sizes)) throw refusal("a tensor within the operation is too large to count its bytes: make extents smaller");
  return p;
}

}  // namespace planning
