// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/plan.hpp>

#include "../../tracing.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace gs = gshard;
namespace op = gs::op;
using gs::builder, gs::dtype, gs::fault, gs::in, gs::none, gs::P, gs::symbol;
using tracing::fails, tracing::input;

namespace {

// It is a property of the tensor and its other names, in both directions. Numbers and graph do not change.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB"), named = gs::may_move(x);
  const std::size_t before = b.program.nodes.size();
  const symbol y = gs::on_wire<gs::bfloat16>(named);
  return y.id == named.id && b.program.nodes.size() == before && x.get().bf16_on_wire && gs::may_move(y).get().bf16_on_wire &&
         !(gs::here(x) + 1.0).get().bf16_on_wire;
}));
// Also for an input in column-major order, which einsums read instead of the tensor in the model's order.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB"), reversed = gs::detail::emit_reversed(b, x, "x");
  gs::on_wire<gs::bfloat16>(reversed);
  return gs::einsum<"ba->ab">(reversed).id >= 0 && b.program.nodes.back().input(0) == x.id && x.get().bf16_on_wire;
}));
// The gradient has it as well.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = gs::on_wire<gs::bfloat16>(input(b, "A")), z = input(b, "A");
  const auto d = gs::gradients(gs::sum(x * x * z), std::array{x, z});
  return d[0].get().bf16_on_wire && !d[1].get().bf16_on_wire && d[0].get().type == dtype::f32;
}));
static_assert(tracing::wrong_type("on_wire", 0, "i32", "f32, f64",
                                  [](builder& b, auto&) { gs::on_wire<gs::bfloat16>(input(b, "A", dtype::i32)); }));
static_assert(fails(fault::wrong_type, "on_wire", [](builder& b, auto&) { gs::on_wire<gs::bfloat16>(input(b, "A", dtype::c64)); }));

using mesh = gs::mesh<gs::axis<"x", 4>>;
constexpr std::int64_t bytes_of(const gs::plan_view& p) {
  return p.bytes_received(p.bind({{'A', 64}, {'B', 128}, {'C', 32}}, std::array{4}));
}

// y = x w: the gather of an operand, the sum over a contracted dim, and an exchange.
template <bool Rounds>
constexpr auto send = [](auto x) {
  if constexpr (Rounds) return gs::on_wire<gs::bfloat16>(x);
  else return x;
};
template <bool Rounds>
inline constexpr auto gathers = [](auto&, auto x) { return gs::replicate(send<Rounds>(x)); };
template <bool Rounds>
inline constexpr auto sums = [](auto&, auto x, auto w) { return gs::replicate(send<Rounds>(gs::einsum<"AB,BC->AC">(x, w))); };
template <bool Rounds>
inline constexpr auto scatters = [](auto&, auto x, auto w) {
  return gs::annotate<P<"x", none>>(send<Rounds>(gs::einsum<"AB,BC->AC">(x, w)));
};
template <bool Rounds>
inline constexpr auto exchanges = [](auto&, auto x) { return gs::annotate<P<none, "x">>(send<Rounds>(x)); };

using x_rows = in<"AB", P<"x", none>>;
using x_columns = in<"AB", P<none, "x">>;
using w_rows = in<"BC", P<"x", none>>;
template <const gs::operation& Kind, class Plain, class Rounding>
constexpr bool halves() {
  return Plain::plan.count(Kind) == 1 && Rounding::plan.count(Kind) == 1 && Plain::plan.count(op::cast) == 0 &&
         Rounding::plan.count(op::cast) == 2 && bytes_of(Plain::plan) > 0 && 2 * bytes_of(Rounding::plan) == bytes_of(Plain::plan);
}

static_assert(halves<op::all_gather, gs::program<gathers<false>, mesh, x_rows>, gs::program<gathers<true>, mesh, x_rows>>());
static_assert(halves<op::all_to_all, gs::program<exchanges<false>, mesh, x_rows>, gs::program<exchanges<true>, mesh, x_rows>>());
static_assert(
    halves<op::all_reduce, gs::program<sums<false>, mesh, x_columns, w_rows>, gs::program<sums<true>, mesh, x_columns, w_rows>>());
static_assert(halves<op::reduce_scatter, gs::program<scatters<false>, mesh, x_columns, w_rows>,
                     gs::program<scatters<true>, mesh, x_columns, w_rows>>());

}  // namespace
