// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/plan.hpp>

#include "../../soundness.hpp"
#include "../../tracing.hpp"

#include <string_view>

namespace gs = gshard;
namespace op = gs::op;
using gs::broadcast, gs::builder, gs::fault, gs::in, gs::none, gs::P, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input, tracing::reads;

namespace {

// Letters are local to the equation. Dims come from the operands that have them.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = broadcast<"q,qk->qk">(input(b, "T"), input(b, "TT"));
  const gs::node& n = b.program.nodes.back();
  return has_dims(y, "TT") && n.kind == op::map && n.inputs == 1 && reads(n.rule.in[0], {0}) && reads(n.rule.out[0], {0, 1});
}));
static_assert(tracing::holds([](builder& b, auto&) { return has_dims(broadcast<"k,qk->qk">(input(b, "T"), input(b, "TT")), "TT"); }));
static_assert(tracing::holds([](builder& b, auto&) {
  return has_dims(broadcast<"GP,C->GPC">(input(b, "GP"), input(b, "C")), "GPC") && reads(b.program.nodes.back().rule.in[0], {0, 1});
}));
static_assert(tracing::holds([](builder& b, auto&) {
  return has_dims(broadcast<",B,A->AB">(input(b, ""), input(b, "B"), input(b, "A")), "AB");
}));
// Integers can also give dims.
static_assert(tracing::holds([](builder& b, auto&) {
  return has_dims(broadcast<"A,B->BA">(input(b, "A"), input(b, "B", gs::dtype::i32)), "BA");
}));
// Transposed.
static_assert(tracing::holds([](builder& b, auto&) {
  return has_dims(broadcast<"AB,C->BCA">(input(b, "AB"), input(b, "C")), "BCA") && reads(b.program.nodes.back().rule.in[0], {2, 0});
}));
// With all dims already present, the result is a new tensor as well.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB"), y = broadcast<"ab,ab->ab">(x, x);
  gs::relu(y);
  return y.id != x.id && has_dims(y, "AB") && b.program.nodes.back().in[0] == x.id;
}));

// Elementwise operations read the operand of a broadcast, also through other elementwise operations.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "T"), y = input(b, "TT");
  const symbol z = y - broadcast<"k,qk->qk">(x, y);
  const gs::node& n = b.program.nodes.back();
  return has_dims(z, "TT") && n.in[0] == y.id && n.in[1] == x.id && reads(n.rule.in[1], {1});
}));
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "A"), y = input(b, "B"), z = input(b, "C");
  const symbol all = broadcast<"ba,c->cab">(broadcast<"a,b->ba">(x, y), z);
  gs::relu(all);
  return b.program.nodes.back().in[0] == x.id && reads(b.program.nodes.back().rule.in[0], {1});
}));

static_assert(fails(fault::index_not_kept, "AB,A->A", [](builder& b, auto&) { broadcast<"AB,A->A">(input(b, "AB"), input(b, "A")); }));
static_assert(fails(fault::index_not_kept, "AA,B->AB", [](builder& b, auto&) { broadcast<"AA,B->AB">(input(b, "AA"), input(b, "B")); }));
static_assert(fails(fault::index_in_no_operand, "A->AB", [](builder& b, auto&) { broadcast<"A->AB">(input(b, "A")); }));
static_assert(fails(fault::operand_count, "A,B->AB", [](builder& b, auto&) { broadcast<"A,B->AB">(input(b, "A")); }));
static_assert(fails(fault::rank_mismatch, "A,AB->AB", [](builder& b, auto&) { broadcast<"A,AB->AB">(input(b, "A"), input(b, "ABC")); }));
static_assert(fails(fault::rank_mismatch, "A,AB->AB", [](builder& b, auto&) { broadcast<"A,AB->AB">(input(b, "AC"), input(b, "AB")); }));
static_assert(fails(fault::dims_differ, "A,AB->AB", [](builder& b, auto&) { broadcast<"A,AB->AB">(input(b, "B"), input(b, "AB")); }));
static_assert(fails(fault::dims_differ, "A,BB->AB", [](builder& b, auto&) { broadcast<"A,BB->AB">(input(b, "A"), input(b, "BC")); }));
// Elements come from the first operand, of any type. The others give only extents.
static_assert(tracing::holds([](builder& b, auto&) {
  return broadcast<"A,B->AB">(input(b, "A", gs::dtype::i32), input(b, "B")).get().type == gs::dtype::i32;
}));

// An equation that is known at run time gives the same nodes.
static_assert(tracing::alike([](builder& b) { broadcast<"k,qk->qk">(input(b, "T"), input(b, "ST")); },
                             [](builder& b) { broadcast("k,qk->qk", {input(b, "T"), input(b, "ST")}); }));
static_assert(fails(fault::malformed_equation, "A,B-AB", [](builder& b, auto&) { broadcast("A,B-AB", {input(b, "A"), input(b, "B")}); }));
static_assert(fails(fault::operand_count, "A,B->AB", [](builder& b, auto&) { broadcast("A,B->AB", {input(b, "A")}); }));
static_assert(fails(fault::index_not_kept, "AB,A->A", [](builder& b, auto&) { broadcast("AB,A->A", {input(b, "AB"), input(b, "A")}); }));

static_assert([] {
  builder b;
  b.fail(fault::unknown_axis, "w");
  return broadcast<"A,B->AB">(b.nothing(), b.nothing()).id < 0;
}());

// An axis of another tensor shards the repeated dim, and nothing is sent. The tensor that gave the dim is not kept.
using mesh = gs::mesh<gs::axis<"x", 2>, gs::axis<"y", 2>>;
inline constexpr auto minus_top = [](auto&, auto x) { return x - broadcast<"q,qk->qk">(gs::reduce_max<"qk->q">(x), x); };
using by_rows = gs::program<minus_top, mesh, in<"TT", P<"x", none>>>;
static_assert(soundness::is_sound(by_rows::plan) && by_rows::plan.collectives() == 0 && by_rows::plan.steps.size() == 2);
using by_columns = gs::program<minus_top, mesh, in<"TT", P<none, "x">>>;
static_assert(soundness::is_sound(by_columns::plan) && by_columns::plan.count(op::all_reduce) == 1 && by_columns::plan.collectives() == 1);

inline constexpr auto grid = [](auto&, auto row, auto column) { return broadcast<"a,b->ab">(row, gs::relu(column)); };
using outer = gs::program<grid, mesh, in<"A", P<"x">>, in<"B", P<"y">>>;
static_assert(soundness::is_sound(outer::plan) && outer::plan.steps.size() == 1 && outer::plan.collectives() == 0);

}  // namespace
