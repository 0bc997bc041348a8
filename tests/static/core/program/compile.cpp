// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/program/compile.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/shape.hpp>

#include "../../soundness.hpp"
#include "../../tracing.hpp"

#include <cstddef>
#include <cstdint>

namespace gs = gshard;
namespace op = gs::op;
using gs::builder, gs::fault, gs::none, gs::P, gs::symbol;
using tracing::input;

namespace {

constexpr gs::plan_tables compiled(builder& b, gs::dims known = {}, bool uneven = false) {
  gs::compile_options options;
  options.known = known;
  options.uneven = uneven;
  return gs::compile(b.program, b.mesh, options);
}

// All passes on a program that was traced by hand.
static_assert(tracing::holds([](builder& b, const gs::parameter_scope& m) {
  const symbol x = input(b, "AB", P<"x", none>{});
  const symbol y = gs::einsum<"AB,BC->AC">(x, m.param("w", "BC", gs::init::zeros()));
  b.program.outputs.push_back({gs::tensor_name("y"), y.id});
  const gs::plan_tables p = compiled(b);
  return soundness::is_sound(p.view()) && p.view().count(op::einsum) == 1 && p.view().collectives() == 0 &&
         p.outputs[0].name.view() == "y" && p.lifetimes.size() == p.values.size() &&
         p.dims.size() == b.program.dims.size();
}));

// A program with a fault has no plan, only the fault.
static_assert(tracing::problem_of([](builder& b, auto&) {
                input(b, "AB", P<"z", none>{});
                if (!compiled(b).steps.empty()) b.program.problem = {};
              }).what == fault::unknown_axis);

// Static extents must be multiples of the static axes that shard the dim, for any spec of the program.
constexpr gs::diagnostic divides(gs::dims known, const gs::mesh_shape& mesh, bool uneven = false) {
  builder b = tracing::on(mesh);
  const symbol x = input(b, "AB", P<gs::axes<"x", "y">, gs::any>{}), y = input(b, "AB");
  b.program.outputs.push_back({gs::tensor_name("y"), (x + y).id});
  return compiled(b, known, uneven).problem;
}
constexpr gs::mesh_shape fixed = gs::mesh<gs::axis<"x", 4>, gs::axis<"y", 3>>::shape;
constexpr gs::mesh_shape half = gs::mesh<gs::axis<"x", 4>, gs::axis<"y">>::shape;
static_assert(!divides({{'A', 24}}, fixed) && !divides({{'B', 5}}, fixed) && !divides({}, fixed) &&
              !divides({{'A', 7}}, tracing::mesh));
static_assert(divides({{'A', 8}}, fixed).what == fault::does_not_divide && !divides({{'A', 8}}, half));
// Unless the program allows uneven shards.
static_assert(!divides({{'A', 8}}, fixed, true));
static_assert([] {
  const gs::diagnostic d = divides({{'A', 18}}, half);
  return d.what == fault::does_not_divide && d.word.view() == "A" && d.first == 18 && d.second == 4;
}());

// A layout with a partial sum is allowed only for a tensor that has one. Its producer then leaves the sum pending, even if another plan is
// cheaper.
constexpr gs::plan_tables with_pending_sum(std::uint8_t axes) {
  builder b = tracing::on(fixed);
  const symbol x = input(b, "AB", P<none, "x">{}), w = input(b, "BC", P<"x", none>{}), y = gs::einsum<"AB,BC->AC">(x, w);
  const symbol z = gs::annotate<P<none, none>>(y);
  for (const symbol& s : {y, z}) b.program.at(s.id).layout.partial = axes;
  b.program.outputs.push_back({gs::tensor_name("z"), z.id});
  gs::compile_options options;
  options.known = {{'A', 4096}, {'B', 4}, {'C', 4096}};
  options.partial_outputs = true;
  return gs::compile(b.program, b.mesh, options);
}
static_assert([] {
  const gs::plan_tables p = with_pending_sum(1);
  return !p.problem && p.view().collectives() == 0 && p.view().at(p.outputs[0].value).layout.partial == 1;
}());
static_assert(with_pending_sum(0).view().count(op::all_gather) == 1);
static_assert(with_pending_sum(2).problem.what == fault::sum_not_pending);

// Extents that cannot be counted, and negative ones.
constexpr fault fault_of_extents(std::int64_t a, std::int64_t b) {
  return tracing::problem_of([=](builder& b_, auto& m) {
           const symbol y = gs::einsum<"AB,BC->AC">(input(b_, "AB", P<"x", none>{}), m.param("w", "BC", gs::init::zeros()));
           b_.program.outputs.push_back({gs::tensor_name("y"), y.id});
           b_.program.problem = compiled(b_, {{'A', a}, {'B', b}}, true).problem;
         }).what;
}
static_assert(fault_of_extents(1 << 20, 1 << 20) == fault::nothing && fault_of_extents(0, 1LL << 40) == fault::nothing);
static_assert(fault_of_extents(1LL << 40, 1LL << 40) == fault::too_large && fault_of_extents(1LL << 52, 1) == fault::too_large);
static_assert(fault_of_extents(-4, 8) == fault::bad_range && fault_of_extents(8, INT64_MAX) == fault::bad_range);
static_assert(fault_of_extents(1LL << 50, 1) == fault::nothing);  // then C is assumed to be small

}  // namespace
