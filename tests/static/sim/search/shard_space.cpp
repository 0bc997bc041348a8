// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/train/adam.hpp>
#include <gshard/sim/search/shard_space.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/testing/all_shardings.hpp>

#include "../../tracing.hpp"

#include <cstddef>
#include <cstdint>

namespace gs = gshard;
using gs::builder, gs::none, gs::P, gs::symbol;
using gs::detail::shard_candidates, gs::detail::shard_space;
using tracing::input;

namespace {

constexpr gs::mesh_shape mesh = gs::mesh<gs::axis<"x", 4>, gs::axis<"y", 2>>::shape;
constexpr gs::dims known{{'A', 16}, {'B', 6}, {'C', 3}};

template <class Spec>
constexpr std::size_t candidates(std::string_view letters, Spec spec, bool uneven = false) {
  builder b = tracing::on(mesh);
  const symbol s = input(b, letters, spec);
  const gs::extents e = gs::detail::assume_extents(b.program.dims, mesh, known);
  return shard_candidates(s.get(), mesh, e, uneven).size();
}
using gs::any;

// One dim that both axes divide: replicated, each axis, both in either order.
static_assert(candidates("A", P<any>{}) == 5);
// Four does not divide six: only y shards B, unless shards may be uneven. No axis shards C into four.
static_assert(candidates("B", P<any>{}) == 2 && candidates("B", P<any>{}, true) == 3);
static_assert(candidates("C", P<any>{}) == 1 && candidates("C", P<any>{}, true) == 2);
static_assert(candidates("AA", P<any, any>{}) == gshard::testing::all_shardings(2, 2, false).size());
// Annotations are kept: closed dims are unchanged, open ones may be sharded further.
static_assert(candidates("AA", P<none, "x">{}) == 1 && candidates("AA", P<none, any>{}) == 5);
static_assert(candidates("A", P<any, gs::partial<"x">>{}) == 2);
static_assert([] {
  builder b = tracing::on(mesh);
  gs::value v = input(b, "AA", P<"x", none>{}).get();
  v.layout.open = 1;
  const gs::extents e = gs::detail::assume_extents(b.program.dims, mesh, known);
  for (const gs::sharding& s : shard_candidates(v, mesh, e, false))
    if (!gs::detail::refines(v.layout, s) || s[0].front() != 0) return false;
  return shard_candidates(v, mesh, e, false).size() == 2;
}());

static_assert(gs::detail::without_digits("encoder.12.wi") == gs::tensor_name("encoder..wi"));

/// Two layers and their update.
constexpr gs::graph two_layers() {
  builder b = tracing::on(mesh);
  const gs::parameter_scope m(b);
  symbol x = input(b, "BA"), rate = input(b, "");
  for (int i = 0; i < 2; ++i) x = gs::einsum<"BA,AC->BA">(x, m.scope(i).param("w", "AC", gs::init::zeros()));
  x = gs::einsum<"BA,AC->BC">(x, m.param("last", "AC", gs::init::zeros()));
  gs::adam{}.minimize(m, gs::sum(x), rate);
  return static_cast<gs::graph&&>(b.program);
}
constexpr std::size_t unknowns(bool free_state, bool grouped) {
  const gs::graph g = two_layers();
  const gs::extents e = gs::detail::assume_extents(g.dims, mesh, known);
  return shard_space(g, mesh, e, false, free_state, grouped).variables.size();
}
// x, rate, 0.w, 1.w, last; with grouped layers; each with two moments; with grouped layers and moments.
static_assert(unknowns(false, false) == 5 && unknowns(false, true) == 4);
static_assert(unknowns(true, false) == 11 && unknowns(true, true) == 8);

static_assert([] {
  gs::graph g = two_layers();
  const gs::extents e = gs::detail::assume_extents(g.dims, mesh, known);
  const shard_space each(g, mesh, e, false, false, false), groups(g, mesh, e, false, false, true);
  // Choices for groups are choices for their members.
  gs::detail::picks p(groups.variables.size(), 0);
  p[2] = 3;
  const gs::detail::picks q = each.as_in(groups, p);
  if (q[2] != 3 || q[3] != 3 || q[4] != 0) return false;
  // Optimizer state has the sharding of its parameter.
  const gs::sharding cut = groups.variables[2].candidates[3];
  groups.assign(g, 2, cut);
  int same = 0;
  for (const gs::parameter& t : g.parameters) same += g.at(t.value).layout.same_layout(cut);
  return same == 2 * 3 && each.ways() == groups.ways() * std::int64_t(groups.variables[2].candidates.size());
}());

}  // namespace
