// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/plan.hpp>

#include "../../soundness.hpp"

#include <cstdint>

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P, gs::partial;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;
inline constexpr auto matmul = [](auto&, auto x, auto w) { return gs::einsum<"AB,BC->AC">(x, w); };

// A product of a partial sum is a partial sum. If both operands are partial over one axis, one is completed.
using once = gs::program<matmul, mesh, in<"AB", P<none, none, partial<"x">>>, in<"BC", P<none, none>>, gs::partial_outputs>;
static_assert(once::plan.collectives() == 0 && soundness::is_sound(once::plan));
using both = gs::program<matmul, mesh, in<"AB", P<none, none, partial<"x">>>, in<"BC", P<none, none, partial<"x">>>, gs::partial_outputs>;
static_assert(both::plan.count(op::all_reduce) == 1 && both::plan.collectives() == 1);

// Rows of a partial sum that ids choose are a partial sum as well, and also a scatter_add if both operands are partial.
inline constexpr auto choose = [](auto&, auto table, auto ids) { return gs::gather(table, ids); };
inline constexpr auto add = [](auto&, auto table, auto ids, auto rows) { return gs::scatter_add(table, ids, rows); };
using addends = P<none, none, partial<"x">>;
using chosen = gs::program<choose, mesh, in<"AB", addends>, in<"C", P<none>, std::int32_t>, gs::partial_outputs>;
static_assert(chosen::plan.collectives() == 0 && soundness::is_sound(chosen::plan));
template <class Table, class... More>
using added = gs::program<add, mesh, in<"AB", Table>, in<"C", P<none>, std::int32_t>, in<"CB", addends>, More...>;
static_assert(added<addends, gs::partial_outputs>::plan.collectives() == 0 &&
              soundness::is_sound(added<addends, gs::partial_outputs>::plan));
static_assert(added<P<none, none>>::plan.collectives() == 1 && soundness::is_sound(added<P<none, none>>::plan));

// A maximum stays pending until a node needs it, and is combined as a maximum.
inline constexpr auto largest = [](auto&, auto x) { return gs::reduce_max<"AB->A">(x); };
using pending = gs::program<largest, mesh, in<"AB", P<none, "x">>, gs::partial_outputs>;
static_assert(pending::plan.collectives() == 0 && pending::plan.at(pending::plan.outputs[0].value).layout.pending == gs::reduction::max);
static_assert(gs::program<largest, mesh, in<"AB", P<none, "x">>>::plan.count(op::all_reduce) == 1);

}  // namespace
