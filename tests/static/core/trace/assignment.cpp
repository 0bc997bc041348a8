// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/trace/assignment.hpp>

#include <gshard/plan.hpp>

#include "../../soundness.hpp"
#include "../../tracing.hpp"

#include <array>
#include <cstdint>
#include <initializer_list>

namespace gs = gshard;
using gs::fault, gs::symbol;
using list = std::initializer_list<int>;

namespace {

using mesh = gs::mesh<gs::axis<"x", 2>, gs::axis<"y", 4>>;

struct reading {
  gs::sharding layout;
  fault problem;
  gs::list<int> orders{};
};
constexpr reading read(list pieces, list devices, const gs::mesh_shape& shape = mesh::shape) {
  gs::builder b = tracing::on(shape);
  const symbol x = tracing::input(b, "ABC"), y = gs::assign(x, pieces, devices);
  return {y.id >= 0 ? y.get().layout : gs::sharding{}, b.program.problem.what, b.program.orders};
}
constexpr bool lies(const reading& r, list a, list b, list c) {
  return r.problem == fault::nothing && tracing::reads(r.layout[0], a) && tracing::reads(r.layout[1], b) && tracing::reads(r.layout[2], c);
}

// The paper's example: [3, 16, 64] in pieces of [3, 8, 16].
static_assert(lies(read({1, 2, 4}, {0, 1, 2, 3, 4, 5, 6, 7}), {}, {0}, {1}));
// The device order determines the axis of each dim, and the major one.
static_assert(lies(read({1, 4, 2}, {0, 4, 1, 5, 2, 6, 3, 7}), {}, {1}, {0}));
static_assert(lies(read({8, 1, 1}, {0, 1, 2, 3, 4, 5, 6, 7}), {0, 1}, {}, {}));
static_assert(lies(read({8, 1, 1}, {0, 4, 1, 5, 2, 6, 3, 7}), {1, 0}, {}, {}));
// An order that no axes give is a separate device order, over the axes that make the pieces.
static_assert(lies(read({8, 1, 1}, {7, 6, 5, 4, 3, 2, 1, 0}), {0, 1}, {}, {}) &&
              read({8, 1, 1}, {7, 6, 5, 4, 3, 2, 1, 0}).layout.order == 1);
static_assert(tracing::same(read({1, 2, 4}, {1, 0, 2, 3, 4, 5, 6, 7}).orders, {1, 0, 2, 3, 4, 5, 6, 7}));
static_assert(tracing::same(read({1, 4, 2}, {4, 0, 1, 5, 2, 6, 3, 7}).orders,
                            {4, 1, 2, 3, 0, 5, 6, 7}));  // piece (i, j) is on position (j, i)
static_assert(read({8, 1, 1}, {0, 4, 1, 5, 2, 6, 3, 7}).orders.empty());
// Two tensors with one order, and one with another.
static_assert([] {
  gs::builder b = tracing::on(gs::mesh<gs::axis<"x", 3>>::shape);
  const symbol x = tracing::input(b, "A");
  const int first = gs::assign(x, {3}, {1, 0, 2}).get().layout.order, other = gs::assign(x, {3}, {1, 2, 0}).get().layout.order;
  return first == 1 && other == 2 && gs::assign(x, {3}, {1, 0, 2}).get().layout.order == 1 && b.program.orders.size() == 6;
}());
// No axes make these pieces; devices that are not in the mesh; too few devices; unknown extents.
static_assert(read({3, 1, 1}, {0, 1, 2}).problem == fault::no_such_assignment);
static_assert(read({8, 1, 1}, {7, 6, 5, 4, 3, 2, 1, 1}).problem == fault::no_such_assignment);
static_assert(read({8, 1, 1}, {8, 6, 5, 4, 3, 2, 1, 0}).problem == fault::no_such_assignment);
static_assert(read({1, 2, 2}, {0, 1, 2, 3}).problem == fault::no_such_assignment);
static_assert(read({2, 1, 1}, {0, 1}, gs::mesh<gs::axis<"x">>::shape).problem == fault::no_such_assignment);
static_assert(read({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7}).problem == fault::rank_mismatch);

// The same with specs.
namespace op = gs::op;
using gs::device_order, gs::none, gs::P;
using four = gs::mesh<gs::axis<"x", 4>>;
inline constexpr auto reordered = [](auto&, auto x) { return gs::annotate<P<"x", none, device_order<0, 2, 1, 3>>>(x); };
template <class Spec>
inline constexpr gs::plan_view plan = gs::program<reordered, four, gs::in<"AB", Spec, float>, gs::extent<'A', 8>, gs::extent<'B', 4>>::plan;
constexpr std::int64_t received(const gs::plan_view& p) {
  return p.bytes_received(p.bind({{'A', 8}, {'B', 4}}, std::array{4}));
}
constexpr bool is_one(const gs::plan_view& p, gs::op_ref kind, std::int64_t bytes) {
  return p.count(kind) == 1 && p.collectives() == (kind != op::slice) && received(p) == bytes && soundness::is_sound(p);
}
static_assert(plan<P<"x", none, device_order<0, 2, 1, 3>>>.collectives() == 0);
static_assert(is_one(plan<P<"x", none>>, op::collective_permute, 2 * 4 * 4));
static_assert(is_one(plan<P<"x", none, device_order<3, 2, 1, 0>>>, op::collective_permute, 2 * 4 * 4));
static_assert(is_one(plan<P<none, "x">>, op::all_to_all, (2 * 4 - 2) * 4));
static_assert(is_one(plan<P<none, none>>, op::slice, 0));
constexpr gs::fault fault_of(const gs::mesh_shape& shape, const gs::named_sharding& named) {
  gs::builder b = tracing::on(shape);
  b.resolve(named, "w");
  return b.program.problem.what;
}
static_assert(fault_of(four::shape, P<"x", device_order<1, 0, 3, 2>>::named) == fault::nothing);
static_assert(fault_of(four::shape, P<"x", device_order<1, 0>>::named) == fault::no_such_order);
static_assert(fault_of(four::shape, P<"x", device_order<1, 0, 3, 3>>::named) == fault::no_such_order);
static_assert(fault_of(gs::mesh<gs::axis<"x">>::shape, P<"x", device_order<1, 0>>::named) == fault::no_such_order);
static_assert(fault_of(gs::mesh<gs::axis<"x", 2>, gs::axis<"y", 1>>::shape, P<"x", gs::partial<"y">, device_order<1, 0>>::named) ==
              fault::incomplete_output);
// Replicas are equal in every order.
static_assert([] {
  gs::builder b = tracing::on(four::shape);
  return b.resolve(P<none, device_order<1, 0, 3, 2>>::named, "w").order == 0 && b.program.orders.empty();
}());

}  // namespace
