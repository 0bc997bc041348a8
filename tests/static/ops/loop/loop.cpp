// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include "../../tracing.hpp"

#include <array>
#include <tuple>
#include <type_traits>

namespace gs = gshard;
namespace op = gs::op;
using gs::builder, gs::fault, gs::in, gs::none, gs::P, gs::symbol;
using tracing::count, tracing::fails, tracing::has_dims, tracing::input;

namespace {

// Unrolled: every iteration has the sharding of the first operand.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB", P<"x", none>{});
  const symbol y = gs::repeat<3>(x, [](symbol s) { return gs::relu(s) + s; });
  return has_dims(y, "AB") && b.program.nodes.size() == 9 && y.get().layout == x.get().layout &&
         gs::repeat<0>(x, [](symbol s) { return s; }).id == x.id;
}));
static_assert(fails(fault::dims_differ, "repeat", [](builder& b, auto&) {
  gs::repeat<2>(input(b, "AB"), [](symbol s) { return gs::sum<"ab->a">(s); });
}));

// A chain of layers whose carried value stays sharded.
inline constexpr auto square = [](auto&, auto x, auto w) {
  return gs::repeat<4>(x, [=](symbol s) { return gs::einsum<"bm,mn->bn">(s, w); });
};
using layers = gs::program<square, gs::mesh<gs::axis<"x">>, in<"BM", P<"x", none>>, in<"MM">>;
static_assert(layers::plan.collectives() == 0 && layers::plan.count(op::einsum) == 4);
// Many layers: the table of tensors grows while a layer is annotated like the first operand.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB", P<"x", none>{});
  return gs::repeat<40>(x, [](symbol s) { return s + s; }).get().layout == x.get().layout;
}));

constexpr auto positive = [](symbol s, auto...) { return gs::less(s - s, gs::sum(s)); };
constexpr auto doubled = [](symbol s) { return s + s; };

// A condition, a body, and a carried value with its annotated sharding.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB", P<"x", none>{});
  const symbol y = gs::while_loop([](symbol s) { return gs::sum(s); }, doubled, x);
  return has_dims(y, "AB") && y.get().layout == x.get().layout && count(b.program, op::loop_begin) == 1 &&
         count(b.program, op::loop_test) == 1 && count(b.program, op::loop_end) == 1 && count(b.program, op::carry) == 2 &&
         b.program.while_loops == 1 && b.program.nodes.back().kind == op::loop_end;
}));
// Several states of any dims and types.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB"), ids = input(b, "A", gs::dtype::i32), n = input(b, "");
  const auto all = gs::while_loop([](symbol, symbol, symbol left) { return left; },
                                  [](symbol s, symbol i, symbol left) { return std::tuple(s + s, i, left - left); }, x, ids, n);
  static_assert(std::is_same_v<decltype(all), const std::array<symbol, 3>>);
  return has_dims(all[0], "AB") && all[1].get().type == gs::dtype::i32 && has_dims(all[2], "");
}));
// A count, real or integer.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB"), n = input(b, "", gs::dtype::i32), f = input(b, "");
  const auto [y, z] = gs::repeat(f, [](symbol u, symbol v) { return std::array{v, u}; }, x, x);
  return has_dims(gs::repeat(n, doubled, x), "AB") && has_dims(y, "AB") && has_dims(z, "AB") && b.program.while_loops == 2;
}));
// Swapped states are not overwritten before they are read.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "A"), y = input(b, "A"), n = input(b, "");
  gs::while_loop([](symbol, symbol, symbol left) { return left; },
                 [](symbol u, symbol v, symbol left) { return std::tuple(gs::replicate(v), u, left); }, x, y, n);
  return count(b.program, op::cast) == 2;
}));

static_assert(fails(fault::not_a_scalar, "while_loop", [](builder& b, auto&) { gs::while_loop(positive, doubled, input(b, "AB")); }));
static_assert(fails(fault::dims_differ, "while_loop", [](builder& b, auto&) {
  gs::while_loop([](symbol s) { return gs::sum(s); }, [](symbol s) { return gs::sum<"ab->b">(s); }, input(b, "AB"));
}));
static_assert(tracing::wrong_type("while_loop", 0, "f64", "f32", [](builder& b, auto&) {
  gs::while_loop([](symbol s) { return gs::sum(s); }, [](symbol s) { return gs::cast<double>(s); }, input(b, "AB"));
}));
static_assert(tracing::wrong_type("while_loop", "condition", "c64", "f32, f64, i32, i64, bool", [](builder& b, auto&) {
  gs::while_loop([](symbol s) { return gs::sum(s); }, [](symbol s) { return s; }, input(b, "AB", gs::dtype::c64));
}));
static_assert(fails(fault::not_a_scalar, "repeat", [](builder& b, auto&) { gs::repeat(input(b, "A"), doubled, input(b, "AB")); }));
// An earlier fault remains the fault.
static_assert(fails(fault::dims_differ, "repeat", [](builder& b, auto&) {
  const symbol x = gs::repeat<1>(input(b, "AB"), [](symbol s) { return gs::sum<"ab->b">(s); });
  const auto all = gs::repeat(input(b, ""), [](symbol u, symbol v) { return std::array{v, u}; }, b.nothing(), x);
  gs::while_loop([](symbol s) { return s; }, doubled, all[0]);
}));

// The plan of a loop: its steps count once, and a loop-invariant tensor is resharded before it.
inline constexpr auto iteration = [](auto& m, auto x, auto n) {
  const auto w = m.param("w", "MN", P<none, "x">{}, gs::init::fan_in("M"));
  return gs::repeat(n, [=](symbol s) { return gs::einsum<"bn,mn->bm">(gs::einsum<"bm,mn->bn">(s, w), w); }, x);
};
using iterated = gs::program<iteration, gs::mesh<gs::axis<"x">>, in<"BM", P<"x", none>>, in<"", void, std::int32_t>>;
static_assert(iterated::plan.count(op::loop_begin) == 1 && iterated::plan.count(op::einsum) == 2);
static_assert(iterated::plan.collectives() == 1 && iterated::plan.count(op::all_gather) == 1);
static_assert([] {
  bool begun = false;
  for (const gs::node& step : iterated::plan.steps) {
    begun = begun || step.kind == op::loop_begin;
    if (step.kind == op::all_gather) return !begun;
  }
  return false;
}());

// Loops that no result needs are not in the plan, and neither are states that no result needs.
inline constexpr auto unused = [](auto&, auto x, auto n) {
  const auto [y, left] = gs::while_loop([](symbol, symbol k) { return k; },
                                        [](symbol s, symbol k) { return std::tuple(gs::repeat(k, doubled, s), k - k); }, x, n);
  gs::repeat(n, doubled, y);
  return left;
};
using skipped = gs::program<unused, gs::mesh<gs::axis<"x">>, in<"B">, in<"">>;
static_assert(skipped::plan.count(op::loop_begin) == 1 && skipped::plan.count(op::loop_end) == 1);

// Gradients inside the body, and around a loop without gradient.
inline constexpr auto descent = [](auto&, auto x, auto a, auto n) {
  const auto y = gs::repeat(
      n, [=](symbol s) { return s - 0.1 * gs::gradients(gs::sum((s - a) * (s - a)), std::array{s})[0]; }, x);
  const auto loss = gs::sum(gs::stop_gradient(y) * a);
  return std::tuple(loss, gs::gradients(loss, std::array{a})[0]);
};
using descended = gs::program<descent, gs::mesh<gs::axis<"x">>, in<"B", P<"x">>, in<"B">, in<"">>;
static_assert(descended::plan.count(op::loop_test) == 1);

// strict: if annotated, the body may return its carried value in its sharding.
inline constexpr auto said = [](auto&, auto x, auto n) {
  return gs::repeat(n, [](symbol s) { return gs::annotate<P<none, "x">>(s); }, x);
};
using quiet = gs::program<said, gs::mesh<gs::axis<"x">>, in<"AB", P<"x", none>>, in<"">, gs::strict>;
static_assert(quiet::plan.count(op::all_to_all) == 2);

}  // namespace
