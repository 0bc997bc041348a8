// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/plan.hpp>

#include "communication.hpp"

#include <cstdint>

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P, gs::plan_view;
using communication::plan_of, communication::sends;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;

// Rows on one device each, which are sharded further, merge without communication.
inline constexpr auto merge_rows = [](auto&, auto x) { return gs::merge_dims<0>(x); };
using rows = gs::program<merge_rows, gs::mesh<gs::axis<"x", 2>, gs::axis<"y">>, in<"AB", P<"x", "y">>, gs::extent<'A', 2>>;
static_assert(rows::plan.collectives() == 0 && rows::plan.at(rows::plan.outputs[0].value).layout[0].size() == 2);

inline constexpr auto merge = [](auto&, auto x) { return gs::merge_dims<1>(x); };
static_assert(sends(plan_of<merge, mesh, in<"ABC", P<"x", none, none>>>, {}));
// If the extents divide, blocks of the first dim are blocks of both. Otherwise borders are exchanged.
static_assert(sends(plan_of<merge, gs::mesh<gs::axis<"x", 4>>, in<"ABC", P<none, "x", none>>, gs::extent<'B', 8>, gs::extent<'C', 3>>, {}));
static_assert(sends(plan_of<merge, mesh, in<"ABC", P<none, "x", none>>>, {op::collective_permute}));
// The wanted layout of the result shards no rows if there is only one.
inline constexpr auto merge_and_cut = [](auto&, auto x) { return gs::annotate<P<none, "x">>(gs::merge_dims<1>(x)); };
static_assert(
    sends(plan_of<merge_and_cut, gs::mesh<gs::axis<"x", 4>>, in<"ABC", P<none, none, none>>, gs::extent<'B', 1>, gs::extent<'C', 8>>, {}));
// --- sub-axes are axes: eight over both halves of an axis of four are two over one and four over the other, and nothing moves ---

inline constexpr auto apart = [](auto&, auto x) { return gs::annotate<P<"x0", "x1">>(gs::split_dim<0>(x, "BC")); };
constexpr plan_view halves = plan_of<apart, gs::mesh<gs::axis<"x0", 2>, gs::axis<"x1", 2>>, in<"A", P<gs::axes<"x0", "x1">>>,
                                     gs::extent<'A', 8>, gs::extent<'B', 2>, gs::extent<'C', 4>>;
static_assert(halves.collectives() == 0);

}  // namespace
