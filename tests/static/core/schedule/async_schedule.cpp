// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/schedule/async_schedule.hpp>

#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gs = gshard;
namespace op = gs::op;
using gs::P, gs::none;

namespace {

using mesh = gs::mesh<gs::axis<"data", 4>>;

template <class Program>
struct planned {
  static constexpr gs::plan_view plan = Program::plan;
  gs::list<gs::async_interval> all;

  constexpr explicit planned(const gs::dims& bound) {
    constexpr std::array<int, 1> extents{4};
    all = gs::async_schedule(plan, plan.bind(bound, gs::list_view<int>(extents.data(), extents.size())));
  }
  constexpr const gs::async_interval& operator[](std::size_t i) const { return all[i]; }

  /// The k-th step of a kind.
  static constexpr int step(gs::op_ref kind, int k = 0) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
      if (plan.steps[i].kind == kind && k-- == 0) return int(i);
    return -1;
  }
  constexpr const gs::async_interval& of(gs::op_ref kind, int k = 0) const { return all[std::size_t(step(kind, k))]; }
};

// Weights are sharded over the data axis, and gathered before each product.
constexpr auto four_layers = [](auto& m, auto x) {
  auto y = x;
  for (int i = 0; i < 4; ++i)
    y = gs::relu(gs::einsum<"BM,MN->BN">(y, m.scope(i).param("w", "MM", P<"data", none>{}, gs::init::fan_in("M"))));
  return y;
};
using gathered = planned<gs::program<four_layers, mesh, gs::in<"BM", P<"data", none>>>>;
constexpr gs::dims large = {{'B', 64}, {'M', 64}};
constexpr gs::dims tiny = {{'B', 4}, {'M', 4}};

static_assert(gathered::plan.count(op::all_gather) == 4);
static_assert([] {
  const gathered p(large);
  bool one_ahead = p.of(op::all_gather, 0).start == 0;
  for (int k = 0; k < 4; ++k) one_ahead = one_ahead && p.of(op::all_gather, k).finish == gathered::step(op::einsum, k);
  for (int k = 1; k < 4; ++k) one_ahead = one_ahead && p.of(op::all_gather, k).start == gathered::step(op::einsum, k - 1);
  return one_ahead;
}(), "the weights of a layer arrive while the layer before it computes, and no earlier");
static_assert([] {
  const gathered p(tiny);
  for (std::int32_t i = 0; i < std::int32_t(p.all.size()); ++i)
    if (p[std::size_t(i)] != gs::async_interval{i, i + 1}) return false;
  return true;
}(), "small gathers stay where they are");

// Without another step to overlap with, an exchange is synchronous, although aliases before and after it leave room.
constexpr auto lone_exchange = [](auto&, auto x) {
  return gs::expand_dims(gs::annotate<P<none, "data">>(gs::merge_dims(x, 1)), 0);
};
using exchanged = planned<gs::program<lone_exchange, mesh, gs::in<"ABC", P<"data", none, none>>>>;
static_assert(exchanged::plan.count(op::all_to_all) == 1 && exchanged::plan.steps.size() > 2);
static_assert([] {
  const exchanged p({{'A', 64}, {'B', 64}, {'C', 64}});
  const std::int32_t at = exchanged::step(op::all_to_all);
  return p.of(op::all_to_all) == gs::async_interval{at, at + 1};
}());

// Gradients are summed while the gradients of earlier layers are computed.
inline constexpr auto training_step = [](auto& m, auto x, auto rate) {
  gs::symbol y = x;
  for (int i = 0; i < 24; ++i) y = gs::relu(gs::einsum<"BM,MN->BN">(y, m.scope(i).param("w", "MM", gs::init::fan_in("M"))));
  const auto loss = gs::sum(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using trained = planned<gs::program<training_step, mesh, gs::in<"BM", P<"data", none>>, gs::in<"">>>;

static_assert([] {
  const trained p(large);
  for (std::size_t i = 0; i < p.all.size(); ++i) {
    const gs::node& n = trained::plan.steps[i];
    const auto [start, finish] = p[i];
    if (start > std::int32_t(i) || finish <= std::int32_t(i)) return false;
    if (n.kind != op::all_reduce && p[i] != gs::async_interval{std::int32_t(i), std::int32_t(i) + 1}) return false;
    for (int k = 0; k < n.inputs; ++k)
      if (trained::plan.at(n.input(k)).producer >= start) return false;
  }
  int products = 0;  // products while the first gradients are summed
  const gs::async_interval first = p.of(op::all_reduce);
  for (std::int32_t i = first.start; i < first.finish; ++i) products += trained::plan.steps[std::size_t(i)].kind == op::einsum;
  return products >= 8;
}());

// The same in buckets of four gradients: a device receives 24 KiB for each.
using in_buckets = planned<gs::program<training_step, mesh, gs::in<"BM", P<"data", none>>, gs::in<"">, gs::extent<'B', 64>,
                                       gs::extent<'M', 64>, gs::combine_up_to<4 * (24 << 10)>>>;
static_assert([] {
  const in_buckets p(large);
  int buckets = 0, products = 0, next = 24 + 8;  // of 24 layers; two products for the gradients of a layer
  for (std::int32_t i = 0; i < std::int32_t(p.all.size()); ++i) {
    for (std::size_t k = 0; k < p.all.size(); ++k) {
      const gs::node& n = in_buckets::plan.steps[k];
      if (n.kind != op::all_reduce || n.inputs != 4 || p[k].start != i) continue;
      if (products != next) return false;
      ++buckets;
      next += 8;
    }
    products += in_buckets::plan.steps[std::size_t(i)].kind == op::einsum;
  }
  return buckets == 6;
}(), "a bucket starts as soon as its gradients exist, so starts are spread over the backward pass");

}  // namespace
