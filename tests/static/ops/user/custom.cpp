// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/cost/step_time.hpp>
#include <gshard/plan.hpp>

#include <array>
#include <string_view>

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"x", 2>>;

namespace {

// y[b, n] from x[b, m] and c[n, m]. M is a sum. In a second rule, K must not be sharded.
struct distance {
  static constexpr std::string_view name = "distance", rule = "BM,NM->BN", sums = "M";
  static constexpr int flops = 3;
  template <class T>
  static void run(gs::local_shard<const T>, gs::local_shard<const T>, gs::local_shard<T>) {}
  static constexpr auto gradient(gs::symbol x, gs::symbol c, gs::symbol, gs::symbol dy) {
    return std::tuple{gs::einsum<"BN,NM->BM">(dy, c), gs::einsum<"BN,BM->NM">(dy, x)};
  }
};
struct sorted_rows {
  static constexpr std::string_view name = "sorted_rows", rule = "BK->BK", whole = "K";
  template <class T>
  static void run(gs::local_shard<const T>, gs::local_shard<T>) {}
};

inline constexpr auto of_two = [](auto&, auto x, auto c) { return gs::custom<distance>(x, c); };
template <class X, class C>
constexpr gs::plan_view plan_of = gs::program<of_two, mesh, in<"BM", X>, in<"NM", C>>::plan;

// Batch and free indices: nothing is sent. The contracted index: a partial sum, completed once.
static_assert(plan_of<P<"x", none>, P<none, none>>.collectives() == 0 && plan_of<P<none, none>, P<"x", none>>.collectives() == 0);
static_assert(plan_of<P<none, "x">, P<none, "x">>.count(op::all_reduce) == 1 && plan_of<P<none, "x">, P<none, "x">>.collectives() == 1);

// An index that must not be sharded: rows are moved, and temporarily sharded along B.
inline constexpr auto of_rows = [](auto&, auto x) { return gs::custom<sorted_rows>(x); };
using rows = gs::program<of_rows, mesh, in<"BK", P<none, "x">>>;
static_assert(rows::plan.count(op::all_to_all) + rows::plan.count(op::all_gather) >= 1);
static_assert([] {
  for (const gs::node& n : rows::plan.steps)
    if (n.kind == op::custom && !rows::plan.at(n.input(0)).layout[1].empty()) return false;
  return rows::plan.count(op::custom) == 1;
}());

// Its flops are priced: 3 per index of B, M and N on a device.
static_assert(gs::flops(plan_of<P<"x", none>, P<none, none>>,
                        plan_of<P<"x", none>, P<none, none>>.bind({{'B', 8}, {'M', 5}, {'N', 7}}, std::array{2})) == 3 * 4 * 5 * 7);

// Its own gradients are used. Without `gradient`, gradients are refused.
inline constexpr auto trained = [](auto& m, auto x) {
  return gs::gradients(gs::sum(gs::custom<distance>(x, m.param("c", "NM", gs::init::zeros()))), std::array{x})[0];
};
static_assert(gs::program<trained, mesh, in<"BM">>::plan.count(op::einsum) >= 1);

}  // namespace
