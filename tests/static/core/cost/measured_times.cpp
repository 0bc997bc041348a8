// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/cost/measured_times.hpp>
#include <gshard/core/cost/step_time.hpp>
#include <gshard/core/program/program.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/ops/rows/softmax.hpp>

#include <array>
#include <cstddef>

namespace gs = gshard;
namespace op = gs::op;
using gs::group_reach, gs::in, gs::none, gs::P;

namespace {

constexpr gs::measured_curve curve() {
  gs::measured_curve c;
  c.add(100, 2);
  c.add(200, 3);
  c.add(400, 7);
  return c;
}
static_assert(curve().known() && !gs::measured_curve{}.known());
static_assert(curve().extended(1) == 2 && curve().extended(150) == 2.5 && curve().extended(400) == 7 && curve().extended(500) == 9);
static_assert(curve().clamped(1) == 2 && curve().clamped(300) == 5 && curve().clamped(500) == 7);

// A curve that falls at its end stays there; one point is a rate.
constexpr gs::measured_curve made(double x, double y, double z = 0, double w = 0) {
  gs::measured_curve c;
  c.add(x, y);
  if (z > 0) c.add(z, w);
  return c;
}
static_assert(made(1, 5, 2, 4).extended(10) == 4 && made(2, 5).extended(4) == 10 && made(2, 5).extended(1) == 5);

static_assert(gs::reach_of(4, 1) == group_reach::within_node && gs::reach_of(4, 4) == group_reach::between_nodes &&
              gs::reach_of(4, 2) == group_reach::both);
static_assert(gs::measured_as(op::scale) == op::map && gs::measured_as(op::softmax) == op::softmax);

// The two axes of a mesh of 2 nodes with 2 devices each, and both.
constexpr gs::machine measured() {
  gs::machine m{.node_devices = 2};
  m.measured.collective(op::all_gather, group_reach::within_node) = made(1000, 1, 2000, 2);
  m.measured.collective(op::all_gather, group_reach::between_nodes) = made(1000, 10, 2000, 20);
  return m;
}
constexpr gs::extents on_nodes() {
  gs::extents e;
  e.axes = {2, 2};
  e.known_axes = 3;
  return e;
}
static_assert(measured().seconds(op::all_gather, 2, on_nodes(), 2000) == 2);
static_assert(measured().seconds(op::all_gather, 1, on_nodes(), 500) == 10);   // the two devices of a node receive 1000 bytes
static_assert(measured().seconds(op::all_gather, 1, on_nodes(), 1000) == 20);
static_assert(measured().seconds(op::all_gather, 3, on_nodes(), 3000) ==
              gs::machine{.node_devices = 2}.seconds(op::all_gather, 3, on_nodes(), 3000));
static_assert(measured().seconds(op::all_gather, 1, on_nodes(), 0) == 0);

// Products by their smallest extent, and other operations by their bytes.
inline constexpr auto product = [](auto&, auto a, auto b) { return gs::einsum<"NM,MH->NH">(a, b); };
using matrices = gs::program<product, gs::mesh<gs::axis<"x", 4>>, in<"NM", P<"x", none>>, in<"MH">>;
constexpr gs::extents sizes() { return matrices::plan.bind({{'N', 80}, {'M', 40}, {'H', 128}}, std::array{4}); }
constexpr gs::machine with_operations() {
  gs::machine m;
  m.memory_bytes = 1e30;
  m.measured.product = made(10, 4, 30, 2);
  m.measured.operations[std::size_t(op::map.id)] = {.start = 5, .per_byte = 2};
  return m;
}
static_assert(gs::seconds_of(matrices::plan, matrices::plan.steps[0], sizes(), with_operations()) == 3 * 2.0 * 20 * 40 * 128);
static_assert(gs::detail::seconds_of_memory(op::scale, 100, with_operations()) == 205);
static_assert(gs::detail::seconds_of_memory(op::map, 0, with_operations()) == 0);
static_assert(gs::detail::seconds_of_memory(op::softmax, 1, with_operations()) < 1e-29);
// Inputs are on the devices that need them.
static_assert(gs::price(matrices::plan, sizes(), with_operations()).communicate == 0);

}  // namespace
