// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/partition/regroup_sums.hpp>
#include <gshard/ops/loop/loop.hpp>
#include <gshard/ops/random/dropout.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/reverse.hpp>
#include <gshard/ops/window/roll.hpp>
#include <gshard/ops/window/slice.hpp>
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

// Sums of partial sums and complete tensors: partial sums are added first, so one all_reduce completes all of them.
namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P;

namespace {

/// x is complete; a, b and c are partial sums.
template <auto Sum>
inline constexpr auto model = [](auto&, auto x, auto h, auto w, auto v) {
  const auto a = gs::einsum<"BH,HM->BM">(h, w), b = gs::einsum<"BH,HM->BM">(h, v), c = gs::einsum<"BH,HM->BM">(h, w * v);
  return Sum(x, a, b, c);
};
template <auto Sum, class... Extents>
using program = gs::program<model<Sum>, gs::mesh<gs::axis<"x", 4>>, in<"BM", P<none, none>>, in<"BH", P<none, "x">>, in<"HM", P<"x", none>>,
                            in<"HM", P<"x", none>>, Extents...>;
/// The same with products that are large in H, so that their sums are smaller than their operands.
template <auto Sum>
using sized = program<Sum, gs::extent<'B', 64>, gs::extent<'M', 256>, gs::extent<'H', 4096>>;
template <auto Sum>
constexpr bool sums_once() {
  return program<Sum>::plan.count(op::all_reduce) == 1 && program<Sum>::plan.collectives() == 1;
}
static_assert(sums_once<[](auto x, auto a, auto b, auto) { return (x + a) + b; }>());  // GPT-J's parallel block
static_assert(sums_once<[](auto x, auto a, auto b, auto) { return x + (a + b); }>());
static_assert(sums_once<[](auto x, auto a, auto b, auto) { return b + (a + x); }>());
static_assert(sums_once<[](auto x, auto a, auto b, auto) { return (x - a) - b; }>());
static_assert(sums_once<[](auto x, auto a, auto b, auto) { return b - (x - a); }>());
static_assert(sums_once<[](auto x, auto a, auto b, auto) { return ((x + a) + x) - b; }>());
static_assert(sums_once<[](auto x, auto a, auto b, auto c) { return (((x + a) - x) + b) + x - c; }>());
static_assert(sums_once<[](auto x, auto a, auto b, auto) { return (a + x) + (b + x); }>());  // also with biases
static_assert(sums_once<[](auto x, auto a, auto b, auto) { return (x - a) - (x - b); }>());
static_assert(sums_once<[](auto x, auto a, auto b, auto c) { return (a + x) + ((x - b) + (c - x)); }>());

/// Products and quotients of partial sums, and parts of them, are regrouped as well.
template <auto Sum>
constexpr std::int64_t received() {
  constexpr gs::dims sizes{{'B', 64}, {'M', 256}, {'H', 4096}};
  return sized<Sum>::plan.bytes_received(sized<Sum>::plan.bind(sizes, std::array{4}));
}
constexpr std::int64_t one_sum = received<[](auto x, auto a, auto b, auto) { return x + (a + b); }>();
static_assert(received<[](auto x, auto a, auto b, auto) { return (a * x) + b; }>() == one_sum);
static_assert(received<[](auto x, auto a, auto b, auto) { return (a * gs::sum(x) + x) - b / gs::sum(x * x); }>() == one_sum);
static_assert(received<[](auto x, auto a, auto b, auto) { return a / 3.0 + gs::einsum<"bm,bm->bm">(x, b); }>() == one_sum);
static_assert(received<[](auto x, auto a, auto b, auto) { return gs::roll(a, 1, 3) + (x + gs::reverse(b, 1)); }>() == one_sum);
static_assert(received<[](auto, auto a, auto, auto) { return gs::slice(a, 1, 0, 64); }>() == one_sum / 4);
static_assert(received<[](auto, auto a, auto, auto) { return gs::slice(a, 1, 0, 192) + gs::slice(a, 1, 64, 256); }>() == one_sum);
static_assert(received<[](auto x, auto a, auto b, auto) { return gs::dropout(a, 0.1) + (x + gs::dropout(b, 0.1)); }>() == one_sum);
static_assert(received<[](auto, auto a, auto, auto) { return gs::pad(a, 1, 1, 1, 0, 2.0); }>() == one_sum);
static_assert(received<[](auto x, auto a, auto, auto) { return x / a; }>() == one_sum);

/// But a sum is completed before an operation that makes it larger, and once for several readers.
static_assert(received<[](auto, auto a, auto, auto) { return gs::pad(a, 1, 128, 128); }>() == one_sum);
static_assert(received<[](auto, auto a, auto b, auto) { return gs::pad(a, 1, 0, 128) + gs::pad(b, 1, 128, 0); }>() == one_sum * 3 / 2);
static_assert(received<[](auto, auto a, auto b, auto) { return gs::pad(a, 1, 0, 512) + gs::pad(b, 1, 512, 0); }>() == 2 * one_sum);
static_assert(received<[](auto x, auto a, auto, auto) { return gs::relu(a + x) + gs::relu(gs::dropout(a, 0.1)); }>() == one_sum);
static_assert(received<[](auto, auto a, auto, auto) {
  const auto branch = [&] { return gs::relu(gs::dropout(a, 0.5)); };
  return branch() + branch() + branch();
}>() == one_sum);
static_assert(received<[](auto, auto a, auto, auto) {
  const auto part = [&](int from) { return gs::relu(gs::slice(a, 1, from, from + 128)); };
  return part(0) + part(64) + part(128);
}>() == one_sum);

/// Tensors that are sent as bf16 still are.
static_assert(received<[](auto x, auto a, auto b, auto) { return (gs::on_wire<gs::bfloat16>(a) + x) + gs::on_wire<gs::bfloat16>(b); }>() == one_sum);
static_assert(received<[](auto, auto a, auto, auto) { return gs::relu(gs::roll(gs::on_wire<gs::bfloat16>(a), 1, 1)); }>() == one_sum / 2);

/// Gradients of the rows of a table are completed with the table, not one by one.
static_assert(received<[](auto, auto a, auto b, auto) { return gs::pad(a, 0, 0, 64) + gs::pad(b, 0, 64, 0); }>() == 2 * one_sum);
static_assert(sized<[](auto, auto a, auto b, auto) { return gs::pad(a, 0, 0, 64) + gs::pad(b, 0, 64, 0); }>::plan.count(op::all_reduce) == 1);

/// A tensor from before a loop is not completed in every iteration.
constexpr bool sums_before_loop() {
  using looping = sized<[](auto x, auto a, auto b, auto) {
    return gs::repeat(gs::cast(gs::sum(0.0 * x), gs::dtype::i32), [&](auto s) { return gs::relu((s + a) + (x + b)); }, 0.0 * x);
  }>;
  bool in_loop = false, right = true;
  for (const gs::node& n : looping::plan.steps) {
    in_loop = in_loop || n.kind == op::loop_begin;
    right = right && !(in_loop && gs::performs(n, op::all_reduce) && looping::plan.at(n.output()).rank() == 2);
  }
  return in_loop && right;
}
static_assert(sums_before_loop());

/// A sum is placed where its addends are available, so that it is completed together with others.
static_assert(sized<[](auto, auto a, auto b, auto c) {
  const auto p = gs::sum(a), q = gs::sum(b), t = gs::sum(gs::relu(c));
  return (p + t) + (q + t);
}>::plan.collectives() == 1);

/// A long chain of products needs no recursion depth of the compiler.
static_assert(received<[](auto x, auto a, auto b, auto) {
  gs::symbol y = a;
  const gs::symbol s = gs::sum(x);
  for (int i = 0; i < 300; ++i) y = gs::here(y) * s;
  return gs::here(y) + b;
}>() == one_sum);

/// If an inner sum, or the complete addend, has other readers, the sums are not regrouped.
static_assert(program<[](auto x, auto a, auto b, auto) { const auto t = x + a; return gs::relu(t) + (t + b); }>::plan.collectives() == 2);
constexpr bool adds_complete(const gs::plan_view& plan) {  // no sum reads two partial sums
  for (const gs::node& n : plan.steps)
    if (n.kind == op::map && n.inputs == 2 && plan.values[std::size_t(n.in[0])].layout.partial != 0) return false;
  return plan.collectives() == 2;
}
static_assert(adds_complete(program<[](auto x, auto a, auto b, auto) { return gs::relu(a) + ((x + a) + b); }>::plan));
static_assert(adds_complete(program<[](auto x, auto a, auto b, auto) { return gs::relu(b) + ((x + a) + b); }>::plan));

// Two sums that run one after the other are both regrouped.
constexpr auto separate_sums = [](auto&, auto x, auto k, auto l, auto m, auto n) {
  constexpr auto part = [](auto of) { return gs::sum<"KBM->BM">(of); };
  return std::array{part(k) * x + part(l) * x, part(m) * x + part(n) * x};
};
using addend = in<"KBM", P<"x", none, none>>;
using separate = gs::program<separate_sums, gs::mesh<gs::axis<"x", 4>>, in<"BM">, addend, addend, addend, addend, gs::extent<'B', 64>,
                             gs::extent<'M', 256>, gs::extent<'K', 8>>;
static_assert(separate::plan.bytes_received(separate::plan.bind({}, {})) == 2 * one_sum);

// No addend is moved across the update of a parameter: it may read the old value of this parameter.
constexpr auto reads_before = [](auto& m, auto h, auto w, auto v, auto u, auto rate) {
  auto p = m.param("p", "BM", gs::init::zeros());
  auto before = p + gs::einsum<"BH,HM->BM">(h, w);
  gs::adam{}.minimize(m, gs::mean(p * p), rate);
  return before + gs::einsum<"BH,HM->BM">(gs::einsum<"BM,MH->BH">(m.updated(p), u), v);
};
static_assert(gs::program<reads_before, gs::mesh<gs::axis<"x", 4>>, in<"BH", P<none, "x">>, in<"HM", P<"x", none>>,
                          in<"HM", P<"x", none>>, in<"MH", P<none, "x">>, in<"">>::plan.count(op::all_reduce) == 2);

}  // namespace
