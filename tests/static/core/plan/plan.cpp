// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/all_operations.hpp>
#include <gshard/core/program/program.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/shape.hpp>

#include <array>
#include <cstdint>
#include <tuple>

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P;

namespace {

// x w with a sharded contracted dim, the sum scattered over rows, rows exchanged for columns, and a sum over everything.
inline constexpr auto model = [](auto& m, auto x) {
  auto y = gs::einsum<"AB,BC->AC">(x, m.param("w", "BC", P<"x", none>{}, gs::init::zeros()));
  auto z = gs::annotate<P<"x", none>>(gs::relu(y));
  auto u = gs::annotate<P<none, "x">>(gs::relu(z));
  return std::tuple{u, gs::sum<"AC->A">(u)};
};
using compiled = gs::program<model, gs::mesh<gs::axis<"x">>, in<"AB", P<none, "x">>>;
constexpr const gs::plan_view& plan = compiled::plan;

// Counts are over the steps.
constexpr int counted = [] {
  int n = 0;
  for (const gs::op_ref t : gs::all_operations) n += plan.count(t);
  return n;
}();
static_assert(counted == int(plan.steps.size()));
static_assert(plan.count(op::einsum) == 2 && plan.count(op::map) == 2 && plan.count(op::all_to_all) == 1);
static_assert(plan.count(op::reduce_scatter) == 1 && plan.count(op::all_reduce) == 1 &&
              plan.collectives() == 3);

// Bytes are summed over the steps, with extents that are bound later. Doubling a sharded dim doubles the sent bytes.
constexpr gs::extents sizes(std::int64_t a, std::int64_t c, int x) {
  return plan.bind({{'A', a}, {'B', 64}, {'C', c}}, std::array{x});
}
constexpr std::int64_t sum_of_kinds(const gs::extents& e) {
  std::int64_t n = 0;
  for (const gs::op_ref t : gs::all_operations) n += plan.bytes_received(t, e);
  return n;
}
static_assert(sum_of_kinds(sizes(128, 256, 4)) == plan.bytes_received(sizes(128, 256, 4)));
static_assert(plan.bytes_received(op::all_to_all, sizes(128, 256, 4)) == 128 / 4 * 256 * 4 * 3 / 4);
static_assert(plan.bytes_received(op::reduce_scatter, sizes(128, 256, 4)) == 128 * 256 * 4 * 3 / 4);
static_assert(plan.bytes_received(op::all_reduce, sizes(1 << 13, 256, 4)) == 2 * ((1 << 13) * 4 * 3 / 4));
static_assert(plan.bytes_received(op::all_to_all, sizes(256, 256, 4)) ==
              2 * plan.bytes_received(op::all_to_all, sizes(128, 256, 4)));
static_assert(plan.bytes_received(sizes(128, 256, 1)) == 0);

static_assert(plan.find("w") == &plan.parameters[0] && !plan.find("v") && !plan.find(""));
static_assert(plan.bind({{'A', 3}}, std::array{2}).dim(plan.at(plan.inputs[0].value).dims[0]) == 3 &&
              plan.bind({{'A', 3}}, std::array{2}).dim(plan.at(plan.inputs[0].value).dims[1]) == -1);

// Extents that a program states, and those of a static mesh, may be omitted.
inline constexpr auto gathered = [](auto&, auto x) { return gs::annotate<P<none, none>>(gs::merge_dims(x, 1)); };
template <class Axis, class... Known>
using stated = gs::program<gathered, gs::mesh<Axis>, in<"ABC", P<"x", none, none>>, Known...>;
using all_stated = stated<gs::axis<"x", 4>, gs::extent<'A', 16>, gs::extent<'B', 8>, gs::extent<'C', 4>>;
static_assert(all_stated::plan.bytes_received(all_stated::plan.bind({}, {})) == 12 * 32 * 4);
static_assert(all_stated::plan.bytes_received(all_stated::plan.bind({{'B', 16}}, std::array{2})) == 8 * 64 * 4);  // given ones win
using one_stated = stated<gs::axis<"x">, gs::extent<'B', 8>>;
constexpr const gs::plan_view& open_plan = one_stated::plan;
static_assert(open_plan.bytes_received(open_plan.bind({{'A', 16}, {'C', 4}}, std::array{4})) == 12 * 32 * 4);
// Without an extent of A or C, the merged dim of B and C has no extent either, and nothing can be counted.
constexpr gs::extents lacking(const gs::dims& given) { return open_plan.bind(given, std::array{4}); }
static_assert(lacking({{'A', 16}}).dim(open_plan.at(open_plan.outputs[0].value).dims[1]) == -1 && !lacking({{'A', 16}}).knows_dim(2));
static_assert(open_plan.bytes_received(lacking({{'A', 16}})) == gs::uncountable && open_plan.bytes_received(lacking({})) == gs::uncountable);
using empty_stated = stated<gs::axis<"x">, gs::extent<'A', 0>, gs::extent<'B', 8>, gs::extent<'C', 4>>;
static_assert(empty_stated::plan.bytes_received(empty_stated::plan.bind({}, std::array{4})) == 0);

}  // namespace
