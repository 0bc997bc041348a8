// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include "../../soundness.hpp"

#include <array>
#include <cstdint>
#include <tuple>

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;

template <auto Model, class... In>
using on_mesh = gs::program<Model, mesh, In...>;

inline constexpr auto softmax = [](auto&, auto x) { return gs::softmax(x); };
inline constexpr auto cumsum = [](auto&, auto x) { return gs::cumsum(x); };
inline constexpr auto best = [](auto&, auto x) { return gs::top_k(x, 2).values; };

// Whole lines keep their kernel and send nothing.
using whole = on_mesh<softmax, in<"AB", P<"x", none>>>;
static_assert(whole::plan.count(op::softmax) == 1 && whole::plan.collectives() == 0);
static_assert(on_mesh<cumsum, in<"AB", P<"x", none>>>::plan.collectives() == 0);
static_assert(on_mesh<best, in<"AB", P<"x", none>>>::plan.collectives() == 0);

// Sharded lines: one maximum and one sum per row.
using cut = on_mesh<softmax, in<"AB", P<none, "x">>>;
static_assert(soundness::is_sound(cut::plan));
static_assert(cut::plan.count(op::softmax) == 0 && cut::plan.count(op::all_reduce) == 2 && cut::plan.collectives() == 2);
// This is also true if rows are sharded as well, for programs without implicit gathers, and for gradients.
using mesh2 = gs::mesh<gs::axis<"x">, gs::axis<"y">>;
template <auto Model, class... Options>
using both_cut = gs::program<Model, mesh2, in<"AB", P<"x", "y">>, Options...>;
inline constexpr auto softmax_gradient = [](auto&, auto x) { return gs::gradients(gs::sum(gs::softmax(x) * x), std::array{x})[0]; };
inline constexpr auto norm = [](auto& m, auto x) {
  return gs::layer_norm(x, m.param("gamma", "B", gs::init::constant(1)), m.param("beta", "B", gs::init::zeros()));
};
template <class Program>
constexpr bool sums_rows_alone(int count) {
  for (const gs::node& s : Program::plan.steps)
    for (int i = 0; gs::traits(s.kind).collective && i < s.inputs; ++i)
      if (s.kind != op::all_reduce || Program::plan.at(s.input(i)).rank() > 1) return false;
  return Program::plan.collectives() == count && soundness::is_sound(Program::plan);
}
static_assert(sums_rows_alone<both_cut<softmax>>(2) && sums_rows_alone<both_cut<softmax, gs::visible>>(2));
static_assert(sums_rows_alone<both_cut<softmax_gradient>>(3) && sums_rows_alone<both_cut<norm>>(2));
// A maximum, a sum of exponentials and the target's logit. The gradient reads the sums of the loss.
inline constexpr auto loss = [](auto&, auto x, auto labels) { return gs::cross_entropy(x, labels, 0.1); };
inline constexpr auto loss_gradient = [](auto&, auto x, auto labels) {
  const auto total = gs::sum(gs::cross_entropy(x, labels, 0.1));
  return std::tuple{total, gs::gradients(total, std::array{x})[0]};
};
inline constexpr auto gradient_alone = [](auto& m, auto x, auto labels) { return std::get<1>(loss_gradient(m, x, labels)); };
template <auto Model, class Layout = P<none, "y">, class... Options>
using classes_cut = gs::program<Model, mesh2, in<"AB", Layout>, in<"A", void, std::int32_t>, Options...>;
static_assert(sums_rows_alone<classes_cut<loss>>(3) && sums_rows_alone<classes_cut<loss, P<none, "y">, gs::visible>>(3));
static_assert(sums_rows_alone<classes_cut<loss_gradient>>(3) && sums_rows_alone<classes_cut<gradient_alone>>(2));
static_assert(sums_rows_alone<classes_cut<loss, P<none, gs::axes<"x", "y">>>>(3));
static_assert(sums_rows_alone<classes_cut<loss_gradient, P<"x", "y">>>(4));  // and the sum over the rows
static_assert(classes_cut<loss_gradient, P<"x", none>>::plan.count(op::cross_entropy) == 1);
static_assert(classes_cut<loss_gradient, P<"x", none>>::plan.count(op::block_cross_entropy) == 0);
// With known extents, the sums are combined: a step for the maxima, and one for the others.
static_assert(sums_rows_alone<gs::program<loss_gradient, gs::mesh<gs::axis<"y", 8>>, in<"AB", P<none, "y">>, in<"A", void, std::int32_t>,
                                          gs::extent<'A', 4096>, gs::extent<'B', 32768>>>(2));
// The head of a language model with a sharded vocabulary receives no more bytes than one with the loss written by hand.
template <bool ByHand>
inline constexpr auto head = [](auto& m, auto x, auto labels, auto rate) {
  const auto logits = gs::einsum<"BTM,VM->BTV">(x, m.param("w", "VM", P<"y", none>{}, gs::init::fan_in("M")));
  const auto total = [&] {
    if constexpr (!ByHand) return gs::sum(gs::cross_entropy(logits, labels));
    const auto classes = gs::cast<float>(gs::iota<"V">(m));
    const auto hot = gs::equal(gs::einsum<"BT,V->BTV">(gs::cast<float>(labels), 0.0 * classes + 1.0), classes);
    return gs::sum(gs::logsumexp<"BTV->BT">(logits) - gs::einsum<"BTV,BTV->BT">(logits, hot));
  }();
  const auto of_input = gs::gradients(total, std::array{x})[0];
  gs::adam{}.minimize(m, total, rate);
  return std::tuple{total, of_input};
};
template <bool ByHand>
constexpr std::int64_t received_by_head = [] {
  using step = gs::program<head<ByHand>, gs::mesh<gs::axis<"x", 4>, gs::axis<"y", 2>>, in<"BTM", P<"x", none, none>>,
                           in<"BT", P<"x", none>, std::int32_t>, in<"">>;
  return step::plan.bytes_received(step::plan.bind({{'B', 32}, {'T', 1024}, {'M', 1024}, {'V', 32768}}, std::array{4, 2}));
}();
static_assert(received_by_head<false> <= received_by_head<true>);
// One sum per block and row is gathered.
using running = on_mesh<cumsum, in<"AB", P<none, "x">>>;
static_assert(soundness::is_sound(running::plan));
static_assert(running::plan.count(op::all_gather) == 1 && running::plan.collectives() == 1 && running::plan.count(op::block_sum) == 1);
constexpr gs::plan_view running_rows = both_cut<cumsum>::plan;
static_assert(running_rows.count(op::all_gather) == 1 && running_rows.collectives() == 1);
// The best elements of every block, with their values and indices.
using candidates = on_mesh<best, in<"AB", P<none, "x">>>;
static_assert(soundness::is_sound(candidates::plan));
static_assert(candidates::plan.count(op::top_k) == 2 && candidates::plan.collectives() <= 2);

}  // namespace
