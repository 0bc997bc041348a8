// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/train/shard_state.hpp>

#include <gshard/plan.hpp>
#include <gshard/train/adafactor.hpp>
#include <gshard/train/adam.hpp>

#include <string_view>

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P;

namespace {

template <bool Shards, bool Averages, class First>
inline constexpr auto step = [](auto& m, auto x, auto rate) {
  auto w = m.param("w", "MH", First{}, gs::init::fan_in("M"));
  auto y = gs::einsum<"BM,MH->BH">(x, w) + m.param("b", "H", gs::init::zeros());
  auto loss = gs::mean(y * y);
  gs::adafactor{.beta1 = Averages ? 0.5 : 0.0, .relative = false, .shard_state_over = Shards ? "data" : ""}.minimize(m, loss, rate);
  return loss;
};
template <bool Shards, class First, bool Averages, class Mesh>
inline constexpr auto& plan =
    gs::program<step<Shards, Averages, First>, Mesh, in<"BM", P<"data", none>>, in<"">, gs::extent<'M', 64>,
                gs::extent<'H', 32>, gs::combine_up_to<0>>::plan;

using data = gs::mesh<gs::axis<"data">>;
using data_by_model = gs::mesh<gs::axis<"data">, gs::axis<"model">>;
constexpr const gs::sharding& layout_of(const gs::plan_view& p, std::string_view name) { return p.at(p.find(name)->value).layout; }

constexpr auto& zero = plan<true, P<none, none>, true, data>;
// The rows are the longest dim: the axis shards them in the row means and in m, but not the column means.
static_assert(layout_of(zero, "adafactor.r.w").dim_of(0) == 0 && layout_of(zero, "adafactor.c.w").used() == 0);
static_assert(layout_of(zero, "adafactor.m.w").dim_of(0) == 0 && layout_of(zero, "adafactor.v.b").dim_of(0) == 0);
static_assert(layout_of(zero, "w").used() == 0);
// One reduce_scatter and one all_gather for each parameter. The sums are over the loss, the columns of w, and three numbers: the mean of
// the rows, and the mean square of both steps.
static_assert(zero.count(op::reduce_scatter) == 2 && zero.count(op::all_gather) == 2 && zero.count(op::all_reduce) == 5);
static_assert(zero.collectives() == 9);
constexpr auto& whole = plan<false, P<none, none>, true, data>;
static_assert(whole.count(op::all_reduce) == 3 && whole.collectives() == 3);

// Together with the axis of a model, which keeps its dim.
constexpr auto& beside = plan<true, P<none, "model">, false, data_by_model>;
static_assert(layout_of(beside, "w").dim_of(1) == 1 && layout_of(beside, "w").dim_of(0) < 0);
static_assert(layout_of(beside, "adafactor.r.w").dim_of(0) == 0 && layout_of(beside, "adafactor.c.w").dim_of(1) == 0);
static_assert(beside.count(op::reduce_scatter) == 2 && beside.count(op::all_gather) == 2);

// Row means and column means of "MM" have the same dims. Row means are sharded like the rows.
inline constexpr auto square_step = [](auto& m, auto x, auto rate) {
  auto y = gs::einsum<"BM,MN->BN">(x, m.param("w", "MM", gs::init::fan_in("M")));
  auto loss = gs::mean(y * y);
  gs::adafactor{.beta1 = 0.5, .relative = false, .shard_state_over = "data"}.minimize(m, loss, rate);
  return loss;
};
constexpr auto& of_square = gs::program<square_step, data, in<"BM", P<"data", none>>, in<"">>::plan;
static_assert(layout_of(of_square, "adafactor.m.w").used() == 1 && layout_of(of_square, "w").used() == 0);
static_assert(layout_of(of_square, "adafactor.r.w").dim_of(0) == 0 && layout_of(of_square, "adafactor.c.w").used() == 0);

// The common options of both optimizers have one type. A name that is known only later converts as well, and an optimizer can be a template
// argument.
static_assert(std::is_same_v<decltype(gs::adam::shard_state_over), decltype(gs::adafactor::shard_state_over)>);
static_assert(std::is_same_v<decltype(gs::adam::decays), decltype(gs::adafactor::decays)>);
static_assert(gs::adam{.shard_state_over = std::string_view("data")}.shard_state_over == gs::axis_name("data"));
template <auto Optimizer>
inline constexpr bool shards_state = !Optimizer.shard_state_over.empty();
static_assert(shards_state<gs::adam{.shard_state_over = "data"}> && !shards_state<gs::adam{}> && !shards_state<gs::adafactor{}>);

// Adam: both moments of every parameter are sharded. One reduce_scatter and one all_gather for each parameter, and the sum of the loss.
template <bool Shards, class First>
inline constexpr auto adam_step = [](auto& m, auto x, auto rate) {
  auto w = m.param("w", "MH", First{}, gs::init::fan_in("M"));
  auto y = gs::einsum<"BM,MH->BH">(x, w) + m.param("b", "H", gs::init::zeros());
  auto loss = gs::mean(y * y);
  gs::adam{.shard_state_over = Shards ? "data" : ""}.minimize(m, loss, rate);
  return loss;
};
template <bool Shards, class First, class Mesh>
inline constexpr auto& adam_plan =
    gs::program<adam_step<Shards, First>, Mesh, in<"BM", P<"data", none>>, in<"">, gs::extent<'M', 64>, gs::extent<'H', 32>,
                gs::combine_up_to<0>>::plan;

constexpr auto& adam_zero = adam_plan<true, P<none, none>, data>;
static_assert(layout_of(adam_zero, "adam.m.w").dim_of(0) == 0 && layout_of(adam_zero, "adam.v.w").dim_of(0) == 0);
static_assert(layout_of(adam_zero, "adam.m.b").dim_of(0) == 0 && layout_of(adam_zero, "adam.v.b").dim_of(0) == 0);
static_assert(layout_of(adam_zero, "w").used() == 0 && layout_of(adam_zero, "b").used() == 0);
static_assert(adam_zero.count(op::reduce_scatter) == 2 && adam_zero.count(op::all_gather) == 2 && adam_zero.count(op::all_reduce) == 1);
static_assert(adam_zero.collectives() == 5);
// Without ZeRO, each gradient is all-reduced.
constexpr auto& adam_whole = adam_plan<false, P<none, none>, data>;
static_assert(layout_of(adam_whole, "adam.m.w").used() == 0);
static_assert(adam_whole.count(op::all_reduce) == 3 && adam_whole.collectives() == 3);
// Together with the axis of a model, which keeps its dim.
constexpr auto& adam_beside = adam_plan<true, P<none, "model">, data_by_model>;
static_assert(layout_of(adam_beside, "adam.m.w").dim_of(0) == 0 && layout_of(adam_beside, "adam.v.w").dim_of(1) == 1);
static_assert(adam_beside.count(op::reduce_scatter) == 2 && adam_beside.count(op::all_gather) == 2);

}  // namespace
