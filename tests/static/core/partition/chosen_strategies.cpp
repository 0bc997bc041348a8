// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/partition/chosen_strategies.hpp>
#include <gshard/plan.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::none, gs::P, gs::partial, gs::symbol;
using tracing::input;

namespace {

struct pair {
  symbol first, second;
};
enum class sharing { one_placement, two_placements, wrong };
/// Whether the nodes of two tensors share their placement; wrong if the second one is not what choose_strategy finds. `change`: changes the
/// graph, the forms in which the plan has tensors, and what readers need.
template <class Model, class Change>
constexpr sharing sharing_of(Model model, Change change) {
  gs::builder b = tracing::on(tracing::mesh);
  const pair made = model(b);
  gs::graph& g = b.program;
  const gs::extents e = gs::detail::assume_extents(g.dims, tracing::mesh, {});
  gs::detail::layout_cache cache(g, e);
  for (const gs::value& v : g.values)
    if (const auto id = std::int32_t(&v - g.values.data()); v.producer < 0) cache.add(id, g.at(id).layout, {}, -1);
  gs::list<char> complete(g.values.size(), 1), may_stay(g.values.size(), 0);
  change(g, cache, complete, may_stay);
  const gs::detail::planning p{g, e, tracing::mesh.count, cache, complete, may_stay};
  const auto maker = [&](symbol s) -> const gs::node& { return g.nodes[std::size_t(g.at(s.id).producer)]; };
  gs::detail::chosen_strategies strategies;
  const gs::detail::placement *const first = &strategies.choose(p, maker(made.first), false, 0),
                              *const second = &strategies.choose(p, maker(made.second), false, 0);
  const gs::detail::partitioning direct = gs::detail::choose_strategy(p, maker(made.second), false);
  if (!second->results[0].same_layout(gs::detail::result_sharding(maker(made.second), 0, direct.how, direct.partial))) return sharing::wrong;
  return first == second ? sharing::one_placement : sharing::two_placements;
}
template <class Model>
constexpr bool shares(Model model) {
  return sharing_of(model, [](auto&...) {}) == sharing::one_placement;
}
template <class Model, class Change>
constexpr bool differs(Model model, Change change) {
  return sharing_of(model, change) == sharing::two_placements;
}
template <class Model>
constexpr bool differs(Model model) {
  return differs(model, [](auto&...) {});
}

template <class First = P<"x", none>, class Second = First>
constexpr pair products(gs::builder& b) {
  const symbol w = input(b, "BC", P<none, "y">{}), x = input(b, "AB", First{}), y = input(b, "AB", Second{});
  return {gs::einsum<"AB,BC->AC">(x, w), gs::einsum<"AB,BC->AC">(y, w)};
}
static_assert(shares(products<>));
static_assert(differs(products<P<"x", none>, P<none, "x">>));
static_assert(differs(products<P<"x", none>, P<partial<"y">, "x", none>>));
// Another equation, other dims, another element type, another operation.
static_assert(differs([](auto& b) {
  const symbol x = input(b, "AA", P<"x", none>{});
  return pair{gs::einsum<"AB,BC->AC">(x, x), gs::einsum<"AB,CB->AC">(x, x)};
}));
static_assert(differs([](auto& b) {
  return pair{gs::sum(input(b, "AB", P<"x", none>{})), gs::sum(input(b, "AC", P<"x", none>{}))};
}));
static_assert(differs([](auto& b) {
  return pair{gs::sum(input(b, "AB")), gs::sum(input(b, "AB", gs::dtype::f64))};
}));
static_assert(differs([](auto& b) {
  const symbol x = input(b, "AB", P<"x", none>{});
  return pair{2.0 * x, gs::relu(x)};
}));
// One more form of an operand, another wanted sharding, another reader.
static_assert(differs(products<>, [](gs::graph& g, auto& cache, auto&, auto&) {
  cache.add(g.nodes[1].in[0], gs::sharding::replicated(2), {}, -1);
}));
static_assert(differs(products<>, [](gs::graph& g, auto&, auto&, auto&) { g.at(g.nodes[1].out[0]).layout[0].push_back(0); }));
static_assert(differs(products<>, [](gs::graph& g, auto&, auto& complete, auto&) { complete[std::size_t(g.nodes[1].in[0])] = 0; }));
static_assert(differs(products<>, [](gs::graph& g, auto&, auto&, auto& may_stay) { may_stay[std::size_t(g.nodes[1].out[0])] = 1; }));
// The same operand twice.
static_assert(differs([](auto& b) {
  const symbol x = input(b, "AB", P<"x", none>{}), y = input(b, "AB", P<"x", none>{});
  return pair{x * y, x * x};
}));
// The placement of a node without a key is not kept: the next one takes its memory.
static_assert(shares([](auto& b) {
  const symbol x = input(b, "AB"), ids = input(b, "I", gs::dtype::i32), rows = input(b, "IB"), more = input(b, "IB", P<"x", none>{});
  return pair{gs::scatter_add(x, ids, rows), gs::scatter_add(x, ids, more)};
}));

}  // namespace
