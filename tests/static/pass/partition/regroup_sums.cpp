// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/pass/partition/regroup_sums.hpp>
#include <gshard/plan.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

// Sums of partial sums and complete tensors: partial sums are added first, so one all_reduce completes all of them.
namespace gs = gshard;
using gs::in, gs::none, gs::op, gs::P;

namespace {

/// x is complete; a, b and c are partial sums.
template <auto Sum>
inline constexpr auto model = [](auto&, auto x, auto h, auto w, auto v) {
  const auto a = gs::einsum<"BH,HM->BM">(h, w), b = gs::einsum<"BH,HM->BM">(h, v), c = gs::einsum<"BH,HM->BM">(h, w * v);
  return Sum(x, a, b, c);
};
template <auto Sum>
using program = gs::program<model<Sum>, gs::mesh<gs::axis<"x">>, in<"BM", P<none, none>>, in<"BH", P<none, "x">>, in<"HM", P<"x", none>>,
                            in<"HM", P<"x", none>>, gs::extent<'B', 8>, gs::extent<'M', 16>, gs::extent<'H', 32>>;
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
static_assert(sums_once<[](auto x, auto a, auto b, auto) { return (a + x) + (b + x); }>());  // the same with biases
static_assert(sums_once<[](auto x, auto a, auto b, auto) { return (x - a) - (x - b); }>());
static_assert(sums_once<[](auto x, auto a, auto b, auto c) { return (a + x) + ((x - b) + (c - x)); }>());

/// So are products and quotients of partial sums, and parts of them.
template <auto Sum>
constexpr std::int64_t received() {
  constexpr gs::dims sizes{{'B', 8}, {'M', 16}, {'H', 32}};
  return program<Sum>::plan.bytes_received(program<Sum>::plan.bind(sizes, std::array{4}));
}
constexpr std::int64_t one_sum = received<[](auto x, auto a, auto b, auto) { return x + (a + b); }>();
static_assert(received<[](auto x, auto a, auto b, auto) { return (a * x) + b; }>() == one_sum);
static_assert(received<[](auto x, auto a, auto b, auto) { return (a * gs::sum(x) + x) - b / gs::sum(x * x); }>() == one_sum);
static_assert(received<[](auto x, auto a, auto b, auto) { return a / 3.0 + gs::einsum<"bm,bm->bm">(x, b); }>() == one_sum);
static_assert(received<[](auto x, auto a, auto b, auto) { return gs::roll(a, 1, 3) + (x + gs::reverse(b, 1)); }>() == one_sum);
static_assert(received<[](auto, auto a, auto, auto) { return gs::slice(a, 1, 0, 4); }>() == one_sum / 4);
static_assert(received<[](auto, auto a, auto, auto) { return gs::slice(a, 1, 0, 12) + gs::slice(a, 1, 4, 16); }>() == one_sum);
static_assert(received<[](auto, auto a, auto, auto) { return gs::pad(a, 1, 1, 1, 0, 2.0); }>() == one_sum);
static_assert(received<[](auto x, auto a, auto, auto) { return x / a; }>() == one_sum);

/// Other readers of an inner sum, or of the complete addend, leave the sums as they are.
static_assert(program<[](auto x, auto a, auto b, auto) { const auto t = x + a; return gs::relu(t) + (t + b); }>::plan.collectives() == 2);
constexpr bool adds_complete(const gs::plan_view& plan) {  // no sum reads two partial sums
  for (const gs::node& n : plan.steps)
    if (n.kind == op::map && n.inputs == 2 && plan.values[std::size_t(n.in[0])].layout.partial != 0) return false;
  return plan.collectives() == 2;
}
static_assert(adds_complete(program<[](auto x, auto a, auto b, auto) { return gs::relu(a) + ((x + a) + b); }>::plan));
static_assert(adds_complete(program<[](auto x, auto a, auto b, auto) { return gs::relu(b) + ((x + a) + b); }>::plan));

}  // namespace
