// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include "../../soundness.hpp"

#include <array>
#include <tuple>

namespace gs = gshard;
namespace op = gs::op;
using gs::combine_up_to, gs::extent, gs::in, gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"x", 2>>;
using cut = P<none, "x">;
using whole = P<none, none>;

constexpr int tensors(const gs::plan_view& p, gs::op_ref kind) {
  int n = 0;
  for (const gs::node& s : p.steps) n += s.kind == kind ? s.inputs : 0;
  return n;
}
template <class Program>
constexpr bool has(gs::op_ref kind, int steps, int of_tensors) {
  return soundness::is_sound(Program::plan) && soundness::sends_once(Program::plan) && Program::plan.count(kind) == steps &&
         tensors(Program::plan, kind) == of_tensors;
}

inline constexpr auto gathers = [](auto&, auto x, auto y) { return std::tuple{gs::annotate<whole>(x), gs::annotate<whole>(y)}; };
template <class... More>
using gathered = gs::program<gathers, mesh, in<"AB", cut>, in<"BC", cut>, extent<'A', 8>, extent<'B', 8>, extent<'C', 8>, More...>;
static_assert(has<gathered<>>(op::all_gather, 1, 2));
static_assert(has<gathered<combine_up_to<0>>>(op::all_gather, 2, 2));
// A device receives 4 * 8 * 4 bytes of each.
static_assert(has<gathered<combine_up_to<256>>>(op::all_gather, 1, 2) && has<gathered<combine_up_to<255>>>(op::all_gather, 2, 2));

// Values and indices.
inline constexpr auto best = [](auto&, auto x) { return gs::top_k(x, 2).values; };
static_assert(has<gs::program<best, gs::mesh<gs::axis<"x">>, in<"AB", cut>>>(op::all_gather, 1, 2));
// Only elements of equal size are combined.
static_assert(has<gs::program<best, gs::mesh<gs::axis<"x">>, in<"AB", cut, double>>>(op::all_gather, 2, 2));

// Moves of several kinds start as one step, which counts once for each kind, with its bytes.
inline constexpr auto mixed = [](auto&, auto x, auto y, auto z) {
  return std::tuple{gs::annotate<whole>(x), gs::annotate<cut>(y), gs::annotate<whole>(z)};
};
template <class... More>
using mixed_moves = gs::program<mixed, mesh, in<"AB", P<"x", none>>, in<"BC", P<"x", none>>, in<"CA", P<"x", none>>, extent<'A', 8>,
                                extent<'B', 8>, extent<'C', 16>, More...>;
template <class Program>
constexpr bool counts(int collectives) {
  const gs::plan_view& p = Program::plan;
  const gs::extents e = p.bind({{'A', 8}, {'B', 8}, {'C', 16}}, std::array{2});
  return soundness::is_sound(p) && soundness::sends_once(p) && p.collectives() == collectives &&
         p.count(op::all_to_all) == 1 && p.bytes_received(op::all_gather, e) == 4 * (8 * 4 + 16 * 4) &&
         p.bytes_received(op::all_to_all, e) == 4 * (8 * 16 / 4) && p.bytes_received(e) == 4 * (32 + 64 + 32);
}
static_assert(counts<mixed_moves<>>(1) && mixed_moves<>::plan.count(op::all_gather) == 1);
static_assert(counts<mixed_moves<combine_up_to<0>>>(3) && mixed_moves<combine_up_to<0>>::plan.count(op::all_gather) == 2);
// Without the exchange there is no all_to_all.
inline constexpr auto gathered_or_shifted = [](auto&, auto x, auto y) {
  return std::tuple{gs::annotate<whole>(x), gs::roll(y, 1, 1)};
};
using shifts = gs::program<gathered_or_shifted, mesh, in<"AB", cut>, in<"BC", cut>, extent<'A', 8>, extent<'B', 8>, extent<'C', 8>>;
static_assert(shifts::plan.count(op::all_gather) == 1 && shifts::plan.count(op::collective_permute) == 1 &&
              shifts::plan.count(op::all_to_all) == 0 && shifts::plan.collectives() == 1);
static_assert([] {
  const gs::extents e = shifts::plan.bind({{'A', 8}, {'B', 8}, {'C', 8}}, std::array{2});
  return shifts::plan.bytes_received(op::all_gather, e) + shifts::plan.bytes_received(op::collective_permute, e) ==
         shifts::plan.bytes_received(e) && shifts::plan.bytes_received(op::collective_permute, e) > 0;
}());

// A sum that depends on another sum waits for it.
inline constexpr auto softmax = [](auto&, auto x) { return gs::softmax(x); };
static_assert(has<gs::program<softmax, mesh, in<"AB", cut>>>(op::all_reduce, 2, 2));

// Sums of gradients are combined up to the limit of a step. With unknown extents, no computation is placed between them.
inline constexpr auto train = [](auto& m, auto x, auto rate) {
  auto y = x;
  y = gs::relu(gs::einsum<"AM,MN->AN">(y, m.param("a", "MN", gs::init::fan_in("M"))));
  y = gs::relu(gs::einsum<"AN,NM->AM">(y, m.param("b", "NM", gs::init::fan_in("N"))));
  y = gs::relu(gs::einsum<"AM,MN->AN">(y, m.param("c", "MN", gs::init::fan_in("M"))));
  y = gs::relu(gs::einsum<"AN,NM->AM">(y, m.param("d", "NM", gs::init::fan_in("N"))));
  y = gs::relu(gs::einsum<"AM,MN->AN">(y, m.param("e", "MN", gs::init::fan_in("M"))));
  y = gs::relu(gs::einsum<"AN,NM->AM">(y, m.param("f", "NM", gs::init::fan_in("N"))));
  const auto loss = gs::sum(y * y);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
template <class... More>
using training = gs::program<train, mesh, in<"AM", P<"x", none>>, in<"">, More...>;
static_assert(has<training<>>(op::all_reduce, 7, 7));
static_assert(has<training<extent<'A', 8>, extent<'M', 8>, extent<'N', 8>>>(op::all_reduce, 2, 7));
static_assert(has<training<extent<'A', 8>, extent<'M', 8>, extent<'N', 8>, combine_up_to<0>>>(op::all_reduce, 7, 7));

// The producer of a later move's operand is placed before the earlier move.
inline constexpr auto sums = [](auto&, auto x, auto y) { return std::tuple{gs::annotate<P<"y", none>>(x), gs::annotate<P<"y", none>>(y)}; };
using two_axes = gs::mesh<gs::axis<"x", 2>, gs::axis<"y", 3>>;
using moved = gs::program<sums, two_axes, in<"AB", P<none, "x">>, in<"BC", P<none, "x">>>;
static_assert(soundness::is_sound(moved::plan) && moved::plan.count(op::slice) == 2 && moved::plan.collectives() == 1);

}  // namespace
