// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/pass/shard_further.hpp>

#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include <cstdint>

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P;

namespace {

using gs::detail::longest_dim;
constexpr int chosen(gs::sharding s, std::int64_t a, std::int64_t b) {
  gs::extents e;
  e.dims = {a, b};
  e.axes[0] = 2;
  e.axes[1] = 4;
  e.known_axes = 3;
  gs::value v;
  v.dims.push_back(0);
  v.dims.push_back(1);
  return longest_dim(v, s, e);
}
constexpr gs::sharding over(int dim, int axis) {
  gs::sharding s = gs::sharding::replicated(2);
  s[dim].push_back(axis);
  return s;
}
// The longest dim that no axis shards; if all are sharded, the longest per device.
static_assert(chosen(gs::sharding::replicated(2), 8, 16) == 1 && chosen(gs::sharding::replicated(2), 16, 16) == 0);
static_assert(chosen(over(1, 0), 8, 16) == 0 && chosen(over(0, 0), 64, 16) == 1);
static_assert([] {
  gs::sharding s = over(0, 1);
  s[1].push_back(0);
  return chosen(s, 16, 10) == 1 && chosen(s, 64, 10) == 0;
}());

template <bool Clips, class First, class Second>
inline constexpr auto step = [](auto& m, auto x, auto rate) {
  auto w = m.param("w", "MH", First{}, gs::init::fan_in("M"));
  auto v = m.param("v", "HO", Second{}, gs::init::fan_in("H"));
  auto y = gs::einsum<"BH,HO->BO">(gs::relu(gs::einsum<"BM,MH->BH">(x, w)), v) + m.param("b", "O", gs::init::zeros());
  auto loss = gs::mean(y * y);
  gs::adam{.clip_norm = Clips ? 1.0 : 0.0, .shard_state_over = "data"}.minimize(m, loss, rate);
  return loss;
};
template <class Mesh, bool Clips, class First, class Second>
inline constexpr auto& plan =
    gs::program<step<Clips, First, Second>, Mesh, in<"BM", P<"data", none>>, in<"">, gs::combine_up_to<0>>::plan;
constexpr bool has(const gs::plan_view& p, int all_reduce, int reduce_scatter, int all_gather) {
  return p.count(op::all_reduce) == all_reduce && p.count(op::reduce_scatter) == reduce_scatter && p.count(op::all_gather) == all_gather &&
         p.collectives() == all_reduce + reduce_scatter + all_gather;
}
using data = gs::mesh<gs::axis<"data">>;
using data_by_model = gs::mesh<gs::axis<"data">, gs::axis<"model">>;
using whole = P<none, none>;

// ZeRO: one reduce_scatter and one all_gather for each of the three parameters. The all_reduce is for the loss. Clipping by the global norm
// adds one, of a scalar: the gradients stay sharded.
static_assert(has(plan<data, false, whole, whole>, 1, 3, 3));
static_assert(has(plan<data, true, whole, whole>, 2, 3, 3));
// Together with the axis of a model, which keeps its dim. The axis of the state shards another dim. One more sum, of y.
static_assert(has(plan<data_by_model, false, P<none, "model">, P<"model", none>>, 2, 3, 3));
static_assert(has(plan<data_by_model, true, P<none, "model">, P<"model", none>>, 3, 3, 3));
constexpr const gs::sharding& layout_of(const gs::plan_view& p, const char* name) { return p.at(p.find(name)->value).layout; }
constexpr auto& beside = plan<data_by_model, false, P<none, "model">, P<"model", none>>;
static_assert(layout_of(beside, "w").same_layout(over(1, 1)) && layout_of(beside, "adam.m.w").dim_of(0) == 0 &&
              layout_of(beside, "adam.m.w").dim_of(1) == 1 && layout_of(beside, "adam.v.v").dim_of(0) == 1);
// Parameters that the axis already shards (FSDP) are gathered where they are used, and updated in their shards.
static_assert(layout_of(plan<data, false, P<"data", none>, P<"data", none>>, "adam.m.w").same_layout(over(0, 0)));
static_assert(plan<data, false, P<"data", none>, P<"data", none>>.count(op::reduce_scatter) == 3);

}  // namespace
