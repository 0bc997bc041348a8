// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/plan.hpp>

#include "../../soundness.hpp"
#include "../../tracing.hpp"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <tuple>

// The communication of verbs on shards: each has its collective, with the bytes of a shard, and no other. Entering and leaving a region
// sends nothing.
namespace gs = gshard;
namespace op = gs::op;
using gs::any, gs::axes, gs::builder, gs::fault, gs::in, gs::none, gs::P, gs::plan_view, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

using line = gs::mesh<gs::axis<"x">>;
using four = gs::mesh<gs::axis<"x", 4>>;
using one = gs::mesh<gs::axis<"x", 1>>;
using grid = gs::mesh<gs::axis<"x">, gs::axis<"y">>;
using grid_of_six = gs::mesh<gs::axis<"x", 3>, gs::axis<"y", 2>>;

constexpr bool sends(const plan_view& p, std::initializer_list<gs::op_ref> kinds) {
  std::size_t i = 0;
  for (const gs::node& s : p.steps)
    if (gs::traits(s.kind).collective && (i >= kinds.size() || kinds.begin()[i++] != s.kind)) return false;
  return i == kinds.size() && soundness::is_sound(p);
}
/// With B = 24, M = 16, H = 8 (f32), on four devices.
constexpr std::int64_t bytes(const plan_view& p, int x = 4, int y = 2) {
  const std::array<int, 2> extents{x, y};
  return p.bytes_received(p.bind({{'B', 24}, {'M', 16}, {'H', 8}}, gs::list_view(extents.data(), std::size_t(p.mesh.count))));
}
constexpr std::int64_t shard = 24 / 4 * 16 * 4;

/// A region over "x" of [B@x, M] whose result has the input's layout.
template <auto Body, class Spec = P<"x", none>>
inline constexpr auto region = [](auto&, auto x) { return gs::per_shard<"x", Spec>(Body, x); };
template <auto Model, class Mesh, class... Options>
inline constexpr plan_view plan = gs::program<Model, Mesh, Options...>::plan;
/// On a mesh and with a dim whose extents are bound at run time, and at compile time.
template <auto Model, class Spec, class... More>
constexpr bool all_send(std::initializer_list<gs::op_ref> kinds, std::int64_t received) {
  constexpr plan_view late = plan<Model, line, in<"BM", Spec>, More...>, mesh_known = plan<Model, four, in<"BM", Spec>, More...>,
                      dims_known = plan<Model, line, in<"BM", Spec>, gs::extent<'B', 24>, gs::extent<'M', 16>, More...>,
                      known = plan<Model, four, in<"BM", Spec>, gs::extent<'B', 24>, gs::extent<'M', 16>, More...>;
  for (const plan_view& p : {late, mesh_known, dims_known, known})
    if (!sends(p, kinds) || bytes(p) != received) return false;
  return true;
}

// In and out, over the first dim, over another one, and for a replicated tensor.
constexpr auto nothing = [](auto x) { return x; };
constexpr auto twice = [](auto x) { return x + x; };
static_assert(all_send<region<nothing>, P<"x", none>>({}, 0) && all_send<region<twice>, P<"x", none>>({}, 0));
static_assert(all_send<region<twice, P<none, "x">>, P<none, "x">>({}, 0));
static_assert(all_send<region<twice, P<none, none>>, P<none, none>>({}, 0));
// The result has the original dims, so that it can be added to other tensors.
inline constexpr auto added = [](auto&, auto x) { return x + gs::per_shard<"x", P<"x", none>>(twice, x); };
static_assert(all_send<added, P<"x", none>>({}, 0));

static_assert(all_send<region<[](auto x) { return gs::all_reduce<"x">(x); }, P<none, none>>, P<"x", none>>({op::all_reduce}, 3 * shard));
static_assert(all_send<region<[](auto x) { return gs::all_reduce<"x">(x, gs::reduction::max); }, P<none, none>>, P<"x", none>>(
    {op::all_reduce}, 3 * shard));
static_assert(all_send<region<[](auto x) { return gs::all_gather<"x">(x, 1); }, P<none, none>>, P<"x", none>>({op::all_gather}, 3 * shard));
static_assert(all_send<region<[](auto x) { return gs::all_gather<"x">(x, 2); }, P<none, none>>, P<"x", none>>({op::all_gather}, 3 * shard));
static_assert(all_send<region<[](auto x) { return gs::reduce_scatter<"x">(x, 2); }, P<none, "x">>, P<"x", none>>(
    {op::reduce_scatter}, shard / 4 * 3));
static_assert(all_send<region<[](auto x) { return gs::all_to_all<"x">(x, 2, 1); }, P<none, "x">>, P<"x", none>>(
    {op::all_to_all}, shard / 4 * 3));
static_assert(all_send<region<[](auto x) { return gs::shift<"x">(x, 1); }>, P<"x", none>>({op::collective_permute}, shard));
static_assert(all_send<region<[](auto x) { return gs::shift<"x">(x, -1, gs::border::zeros); }>, P<"x", none>>(
    {op::collective_permute}, shard));
static_assert(all_send<region<[](auto x) { return gs::halo<"x", 1, 2>(x, 1); }>, P<"x", none>>(
    {op::collective_permute, op::collective_permute}, 3 * 16 * 4));
static_assert(all_send<region<[](auto x) { return gs::halo<"x", 1, 0>(x, 1, gs::border::wrap); }>, P<"x", none>>(
    {op::collective_permute}, 16 * 4));

// On a mesh of one device nothing is sent.
inline constexpr auto all_verbs = [](auto&, auto x) {
  return gs::per_shard<"x", P<"x", none>>(
      [](auto t) { return gs::all_to_all<"x">(gs::shift<"x">(t, 1), 1, 1) + gs::all_reduce<"x">(t); }, x);
};
static_assert(sends(plan<all_verbs, line, in<"BM", P<"x", none>>>, {op::collective_permute, op::all_to_all, op::all_reduce}));
static_assert(plan<all_verbs, one, in<"BM", P<"x", none>>>.collectives() == 0);
// The communication of verbs on shards is explicit: a strict program may use them.
static_assert(sends(plan<all_verbs, line, in<"BM", P<"x", none>>, gs::strict>, {op::collective_permute, op::all_to_all, op::all_reduce}));

// A replicated operand is the same for all devices. The sum over the rows of all devices is one all_reduce.
inline constexpr auto mean_row = [](auto&, auto x, auto w) {
  return gs::per_shard<"x", P<none>>([](auto t, auto v) { return gs::all_reduce<"x">(gs::einsum<"XbM,MH->XH">(t, v)); }, x, w);
};
static_assert(sends(plan<mean_row, line, in<"BM", P<"x", none>>, in<"MH", P<none, none>>>, {op::all_reduce}));
static_assert(bytes(plan<mean_row, line, in<"BM", P<"x", none>>, in<"MH", P<none, none>>>) == 3 * 8 * 4);
// Several results.
inline constexpr auto two_results = [](auto&, auto x) {
  return gs::per_shard<"x", P<none, none>, P<"x", none>>([](auto t) { return std::tuple{gs::all_reduce<"x">(t), t}; }, x);
};
static_assert(sends(plan<two_results, line, in<"BM", P<"x", none>>>, {op::all_reduce}));

// Other axes are unchanged, and regions of two axes nest: over two dims, or over one.
static_assert(sends(plan<region<[](auto t) { return gs::shift<"x">(t, 1); }, P<"x", "y">>, grid, in<"BM", P<"x", "y">>>,
                    {op::collective_permute}));
static_assert(bytes(plan<region<[](auto t) { return gs::shift<"x">(t, 1); }, P<"x", "y">>, grid, in<"BM", P<"x", "y">>>) == shard / 2);
inline constexpr auto inner = [](auto t) {
  return gs::per_shard<"y", P<"x", none, none>>([](auto u) { return gs::all_gather<"y">(gs::shift<"x">(u, 1), 3); }, t);
};
inline constexpr auto of_two_dims = [](auto&, auto x) { return gs::per_shard<"x", P<"x", none>>(inner, x); };
static_assert(sends(plan<of_two_dims, grid, in<"BM", P<"x", "y">>>, {op::collective_permute, op::all_gather}));
static_assert(bytes(plan<of_two_dims, grid, in<"BM", P<"x", "y">>>) == shard);
inline constexpr auto inner_shift = [](auto t) {
  return gs::per_shard<"y", P<"x", "y", none>>([](auto u) { return gs::shift<"y">(u, 1); }, t);
};
inline constexpr auto of_one_dim = [](auto&, auto x) { return gs::per_shard<"x", P<axes<"x", "y">, none>>(inner_shift, x); };
static_assert(sends(plan<of_one_dim, grid, in<"BM", P<axes<"x", "y">, none>>>, {op::collective_permute}));
static_assert(sends(plan<of_one_dim, grid_of_six, in<"BM", P<axes<"x", "y">, none>>>, {op::collective_permute}));
static_assert(bytes(plan<of_one_dim, grid, in<"BM", P<axes<"x", "y">, none>>>) == shard / 2);

// A user's kernel in the middle of a region.
constexpr auto kernel = [](auto, auto) {};
inline constexpr auto with_kernel = [](auto t) {
  return gs::shift<"x">(gs::call_on_shards<kernel, P<"x", none, none>>(gs::annotate<P<"x", none, none>>(gs::shift<"x">(t, 1))), 1);
};
inline constexpr plan_view shifted_twice = plan<region<with_kernel>, line, in<"BM", P<"x", none>>>;
static_assert(shifted_twice.count(op::collective_permute) == 2 && shifted_twice.collectives() == 2 &&
              shifted_twice.count(op::call_on_shards) == 1);

// Gradients communicate in the opposite direction, after the communication of the results.
template <auto Body, class Spec>
inline constexpr auto gradient = [](auto&, auto x) {
  const symbol y = gs::per_shard<"x", Spec>(Body, x);
  return gs::gradients(gs::sum(y * y), gs::list<symbol>(1, x))[0];
};
static_assert(all_send<gradient<[](auto t) { return gs::shift<"x">(t, 1); }, P<"x", none>>, P<"x", none>>(
    {op::collective_permute, op::collective_permute}, 2 * shard));
static_assert(all_send<gradient<[](auto t) { return gs::all_reduce<"x">(t); }, P<none, none>>, P<"x", none>>({op::all_reduce}, 3 * shard));
static_assert(all_send<gradient<[](auto t) { return gs::all_gather<"x">(t, 1); }, P<none, none>>, P<"x", none>>(
    {op::all_gather}, 3 * shard));
static_assert(all_send<gradient<[](auto t) { return gs::reduce_scatter<"x">(t, 2); }, P<none, "x">>, P<"x", none>>(
    {op::reduce_scatter, op::all_gather}, 2 * (shard / 4 * 3)));
static_assert(all_send<gradient<[](auto t) { return gs::all_to_all<"x">(t, 2, 1); }, P<none, "x">>, P<"x", none>>(
    {op::all_to_all, op::all_to_all}, 2 * (shard / 4 * 3)));
static_assert(all_send<gradient<[](auto t) { return gs::halo<"x", 1, 0>(t, 1); }, P<"x", none>>, P<"x", none>>(
    {op::collective_permute, op::collective_permute}, 2 * 16 * 4));
static_assert(all_send<region<[](auto x) {
  return gs::collective_permute<"x", gs::device_pairs({{0, 2}, {2, 0}, {3, 1}})>(x);
}>, P<"x", none>>({op::collective_permute}, shard));
static_assert(all_send<gradient<[](auto x) { return gs::collective_permute<"x", gs::device_pairs({{3, 0}})>(x); }, P<"x", none>>, P<"x", none>>(
    {op::collective_permute, op::collective_permute}, 2 * shard));
// A pair in the middle of a long axis counts as well.
inline constexpr plan_view in_the_middle = plan<region<[](auto t) { return gs::collective_permute<"x", gs::device_pairs({{5, 9}})>(t); }>,
                                                gs::mesh<gs::axis<"x", 24>>, in<"BM", P<"x", none>>>;
static_assert(bytes(in_the_middle, 24) == 16 * 4);  // a row
// Along another mesh axis than the sharded one.
static_assert(sends(plan<region<[](auto t) { return gs::collective_permute<"x", gs::device_pairs({{0, 1}})>(t); }, P<"x", "y">>, grid,
                         in<"BM", P<"x", "y">>>, {op::collective_permute}));
// Every device uses another part of a gathered tensor, so the gradient is summed and scattered at once.
inline constexpr auto gathered = [](auto&, auto x, auto w) {
  const symbol y = gs::per_shard<"x", P<none, "x">>(
      [](auto t, auto v) { return gs::einsum<"BM,XMh->XBh">(gs::all_gather<"x">(t, 1), v); }, x, w);
  return gs::gradients(gs::sum(y * y), gs::list<symbol>(1, x))[0];
};
static_assert(sends(plan<gathered, line, in<"BM", P<"x", none>>, in<"MH", P<none, "x">>>, {op::all_gather, op::reduce_scatter}));
static_assert(sends(plan<gathered, four, in<"BM", P<"x", none>>, in<"MH", P<none, "x">>>, {op::all_gather, op::reduce_scatter}));

// The dims of shards, and of results computed from them.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB", P<"x", none>{}), y = input(b, "AB", P<none, "x">{});
  bool right = true;
  const symbol z = gs::per_shard<"x", P<"x", none>>([&](auto s, auto t) {
    right = has_dims(s, "?CB") && has_dims(t, "?AC") && has_dims(gs::all_gather<"x">(s, 1), "AB") &&
            has_dims(gs::all_gather<"x">(t, 2), "AB") && has_dims(gs::all_to_all<"x">(s, 2, 1), "?AC") &&
            has_dims(gs::reduce_scatter<"x">(t, 1), "?CC") && has_dims(gs::all_reduce<"x">(s), "CB") &&
            has_dims(gs::halo<"x", 1, 1>(s, 1), "?+B") && has_dims(gs::device_index<"x">(s), "?") &&
            has_dims(gs::pad(gs::halo<"x", 1, 1>(s, 1), 1, -1, -1), "?CB");
    return s;
  }, x, y);
  return right && has_dims(z, "AB") && z.get().layout.dim_of(0) == 0;
}));

static_assert(fails(fault::no_device_dim, "shift", [](builder& b, auto&) { gs::shift<"x">(input(b, "A", P<"x">{}), 1); }));
static_assert(fails(fault::no_device_dim, "collective_permute", [](builder& b, auto&) {
  gs::collective_permute<"x", gs::device_pairs({{0, 1}})>(input(b, "A", P<"x">{}));
}));
template <gs::device_pairs Pairs>
constexpr auto permuted = [](builder& b, auto&) {
  gs::per_shard<"x", P<"x">>([](auto t) { return gs::collective_permute<"x", Pairs>(t); }, input(b, "A", P<"x">{}));
};
static_assert(fails(fault::not_a_permutation, "collective_permute", permuted<gs::device_pairs({{0, 1}, {0, 2}})>));
static_assert(fails(fault::not_a_permutation, "collective_permute", permuted<gs::device_pairs({{0, 1}, {1, 1}})>));
static_assert(tracing::out_of_range("collective_permute over x", "source, target", {0, -1}, permuted<gs::device_pairs({{1, 0}, {0, -1}})>));
// It is ambiguous which of two device dims is meant.
static_assert(fails(fault::device_dim_twice, "all_reduce", [](builder& b, auto&) {
  gs::per_shard<"x", P<"x">>([](auto t) { return gs::all_reduce<"x">(gs::einsum<"xa,yb->xyab">(t, t)); }, input(b, "A", P<"x">{}));
}));
static_assert(fails(fault::unknown_axis, "all_reduce", [](builder& b, auto&) { gs::all_reduce<"z">(input(b, "A")); }));
static_assert(tracing::out_of_range("all_gather", "dim", {0}, [](builder& b, auto&) {
  gs::per_shard<"x", P<none>>([](auto t) { return gs::all_gather<"x">(t, 0); }, input(b, "A", P<"x">{}));
}));
static_assert(fails(fault::no_such_dim, "reduce_scatter", [](builder& b, auto&) {
  gs::per_shard<"x", P<"x">>([](auto t) { return gs::reduce_scatter<"x">(t, 2); }, input(b, "A", P<"x">{}));
}));

}  // namespace
