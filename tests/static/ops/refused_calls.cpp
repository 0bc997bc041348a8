// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <gshard/plan.hpp>

#include <array>

#include "../refused_calls.hpp"

// The result of a refused call without a program passes through every verb, in every position. A program that reads it fails with a fault
// without a sentence. Wrong and right calls of all verbs: mustfail/wrong_calls.cpp.
namespace gs = gshard;
using gs::P, gs::none, gs::symbol;
using refused_calls::passes;

namespace {

constexpr auto same = [](auto v) { return v; };

static_assert(passes([](auto&, symbol x, symbol u) { gs::layer_norm(x, u, u), gs::layer_norm(u, x, x); }));
static_assert(passes([](auto&, symbol x, symbol u) {
  gs::attention(x, u, x), gs::attention(u, x, x), gs::attention(x, x, x, {.mask = u});
}));
static_assert(passes([](auto&, symbol x, symbol u) { gs::cross_entropy(x, u), gs::cross_entropy(u, x); }));
static_assert(passes([](auto&, symbol x, symbol u) { gs::gather(x, u), gs::gather(u, x); }));
static_assert(passes([](auto&, symbol x, symbol u) { gs::scatter_add(x, u, x), gs::scatter_add(u, x, x); }));
static_assert(passes([](auto&, symbol x, symbol u) { gs::concat({x, u}, 0), gs::concat({u, x}, 0); }));
static_assert(passes([](auto&, symbol x, symbol u) { gs::einsum<"AB,AB,AB->A">(x, u, x), gs::einsum<"AB,AB->A">(u, x); }));
static_assert(passes([](auto&, symbol x, symbol u) { gs::conv<"AX,xB->XAB">(x, u), gs::conv<"AX,xB->XAB">(u, x); }));
static_assert(passes([](auto&, symbol x, symbol u) { gs::select(x, u, x), gs::select(u, x, 0), gs::less(u, 1), gs::equal(x, u); }));
static_assert(passes([](auto&, symbol, symbol u) { gs::softmax(u), gs::dropout(u, 0.5), gs::scale_by<"A">(u, 2), gs::cast<double>(u); }));
static_assert(passes([](auto&, symbol, symbol u) { gs::mean(u), gs::argmax<"AB->A">(u), gs::logsumexp<"AB->A">(u); }));
static_assert(passes([](auto&, symbol, symbol u) { (void)gs::check_finite(u, "u"); }));
static_assert(passes([](auto&, symbol, symbol u) { gs::cumsum(u), gs::sort(u), gs::top_k(u, 2), gs::slice(u, 0, 0, 1); }));
static_assert(passes([](auto&, symbol, symbol u) { gs::roll(u, 0, 1), gs::merge_dims<0>(u), gs::split_dim<0>(u, "AB"); }));
static_assert(passes([](auto&, symbol, symbol u) { gs::expand_dims<0>(u), gs::squeeze<0>(u), gs::stop_gradient(u); }));
static_assert(passes([](auto&, symbol, symbol u) { gs::rename_dims<"AB">(u), gs::rename_dims(u, "A_"); }));
static_assert(passes([](auto&, symbol, symbol u) { gs::annotate<P<none, none>>(u), gs::replicate(u), gs::split<"x">(u, 0); }));
static_assert(passes([](auto&, symbol, symbol u) { gs::may_move(u), gs::assign(u, {1, 1}, {0}), gs::propagation_barrier(u); }));
static_assert(passes([](auto&, symbol, symbol u) { gs::max_pool(u, {{0, 2}}), gs::mean_pool(u, {{0, 2}}); }));
static_assert(passes([](auto&, symbol, symbol u) { gs::while_loop(same, same, u); }));
static_assert(passes([](auto&, symbol x, symbol u) { gs::while_loop([u](symbol) { return u; }, same, gs::sum(x)); }));
static_assert(passes([](auto&, symbol x, symbol u) { gs::while_loop(same, [u](symbol) { return u; }, gs::sum(x)); }));
static_assert(passes([](auto&, symbol, symbol u) { gs::scan<2>([](symbol, symbol s) { return s; }, u); }));
static_assert(passes([](auto&, symbol x, symbol u) { gs::repeat<2>(u, same), gs::repeat<2>(x, [u](symbol) { return u; }); }));
static_assert(passes([](auto&, symbol x, symbol u) { gs::repeat(u, same, x), gs::repeat(gs::sum(x), same, u); }));
static_assert(passes([](auto&, symbol, symbol u) { gs::full_precision(same, u); }));
static_assert(passes([](auto&, symbol, symbol u) { gs::all_reduce<"x">(u), gs::all_gather<"x">(u, 0), gs::halo<"x", 1, 1>(u, 0); }));
static_assert(passes([](auto&, symbol, symbol u) { gs::collective_permute<"x", gs::device_pairs({{0, 1}})>(u); }));
static_assert(passes([](auto&, symbol, symbol u) { gs::shift<"x">(u, 1), gs::reduce_scatter<"x">(u, 0), gs::all_to_all<"x">(u, 0, 1); }));
static_assert(passes([](auto&, symbol x, symbol u) { gs::per_shard<"x", P<none, none>>([u](symbol) { return u; }, x); }));
static_assert(passes([](auto&, symbol, symbol u) { gs::per_shard<"x", P<"x", none>>(same, u), gs::device_index<"x">(u); }));
static_assert(passes([](auto& m, symbol, symbol u) { m.loss(u), (void)m.objective(u), gs::gradients(u, gs::trainable(m)); }));
static_assert(passes([](auto&, symbol x, symbol u) { gs::gradients(gs::sum(x), std::array{u}); }));
static_assert(passes([](auto& m, symbol, symbol) {
  const symbol v = m.variable("v", "A", gs::init::zeros()), n = m.variable("n", "", P<>{}, gs::init::zeros(), gs::dtype::i32);
  m.update(v, v + v), m.update(n, n + 1), (void)m.updated(v);
  (void)m.cache("c", "A", gs::init::zeros()), (void)m.cache("d", "A", P<none>{}, gs::init::zeros(), gs::dtype::i32);
}));

}  // namespace
