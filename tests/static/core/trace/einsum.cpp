// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/moe/routing/routing.hpp>

#include "../../tracing.hpp"

#include <cstdint>

namespace gs = gshard;
namespace op = gs::op;
using gs::builder, gs::dtype, gs::einsum, gs::fault, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

static_assert(gs::detail::parsed_equation<"GSM,ME->GSE">::value.count == 2);

// The dims of the result are the dims behind the letters, not the letters themselves.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "GSM"), w = input(b, "ME");
  return has_dims(einsum<"GSM,ME->GSE">(x, w), "GSE") && has_dims(einsum<"abc,cd->dab">(x, w), "EGS") &&
         has_dims(einsum<"abc->cab">(x), "MGS") && has_dims(einsum<"abc,de->">(x, input(b, "KE")), "") &&
         has_dims(einsum<"abc,de->edcba">(x, w), "EMMSG");
}));
// The rule of the node: factors in order of appearance. A factor of both operands that the result lacks is contracted.
static_assert(tracing::holds([](builder& b, auto&) {
  einsum<"GSM,ME->GSE">(input(b, "GSM"), input(b, "ME"));
  const gs::node& n = b.program.nodes.back();
  return n.kind == op::einsum && tracing::reads(n.rule.in[0], {0, 1, 2}) &&
         tracing::reads(n.rule.in[1], {2, 3}) && tracing::reads(n.rule.out[0], {0, 1, 3}) &&
         n.rule.blocked == 0;
}));
// bf16_products rounds products of floats, except inside full_precision; sums of one operand are not rounded.
static_assert(tracing::holds([](builder& b, auto&) {
  b.options.bf16_products = true;
  const symbol x = input(b, "GSM"), w = input(b, "ME");
  const auto rounds = [&] { return b.program.nodes.back().attr.rounds_to_bf16; };
  const auto product = [](symbol a, symbol c) { return einsum<"GSM,ME->GSE">(a, c); };
  bool right = (product(x, w), rounds());
  right = right && (gs::full_precision(product, x, w), !rounds()) && (gs::sum(x), !rounds());
  return right && (product(x, w), rounds());
}));
// With bf16_products, tensors in bf16 may be multiplied with floats, also in einsums of many operands. Without it, the error has their
// number.
constexpr bool multiplies(bool bf16_products, dtype first, dtype second, dtype third, int refused = -1) {
  const gs::diagnostic p = tracing::problem_of([=](builder& b, auto&) {
    b.options.bf16_products = bf16_products;
    const symbol y = einsum<"AB,BC,CD->AD">(input(b, "AB", first), input(b, "BC", second), input(b, "CD", third));
    if (!b.failed() && (y.get().type != dtype::f32 || tracing::count(b.program, op::einsum) != 2)) b.fail(fault::bad_range, "result");
  });
  return refused < 0 ? !p : p.what == fault::wrong_type && p.subject.view() == "AB,BC,CD->AD" && p.first == refused &&
                           p.taken == (refused == 0 ? gs::types_with(gs::has_sums) : gs::only(first));
}
static_assert(multiplies(true, dtype::f32, dtype::bf16, dtype::f32) && multiplies(true, dtype::bf16, dtype::bf16, dtype::f32));
static_assert(multiplies(true, dtype::bf16, dtype::bf16, dtype::bf16) && multiplies(false, dtype::f32, dtype::f32, dtype::f32));
static_assert(multiplies(false, dtype::bf16, dtype::f32, dtype::f32, 0) && multiplies(false, dtype::f32, dtype::bf16, dtype::f32, 1));
static_assert(multiplies(false, dtype::f32, dtype::f32, dtype::bf16, 2) && multiplies(true, dtype::f32, dtype::f32, dtype::f16, 2));
// One axis cannot shard two dims of a tensor, so the index of a diagonal is not sharded.
static_assert(tracing::holds([](builder& b, auto&) {
  einsum<"iji->ij">(input(b, "ABA"));
  return b.program.nodes.back().rule.is_blocked(0) && !b.program.nodes.back().rule.is_blocked(1);
}));
// The element type is preserved.
static_assert(tracing::holds([](builder& b, auto&) {
  return einsum<"A,B->AB">(input(b, "A", dtype::f64), input(b, "B", dtype::f64)).get().type == dtype::f64;
}));

static_assert(fails(fault::dims_differ, "GSM,MH->GSH",
                    [](builder& b, auto&) { einsum<"GSM,MH->GSH">(input(b, "GSM"), input(b, "HM")); }));
static_assert(fails(fault::dims_differ, "ii->i", [](builder& b, auto&) { einsum<"ii->i">(input(b, "AB")); }));
static_assert([] {
  const gs::diagnostic p =
      tracing::problem_of([](builder& b, auto&) { einsum<"ab,bc->ac">(input(b, "AB"), input(b, "CD")); });
  return p.what == fault::dims_differ && p.word.view() == "b" && p.first == 1 && p.second == 0;
}());
static_assert([] {
  const gs::diagnostic p = tracing::problem_of([](builder& b, auto&) { einsum<"ab->ba">(input(b, "ABC")); });
  return p.what == fault::rank_mismatch && p.first == 2 && p.second == 3;
}());
static_assert(tracing::wrong_type("a,a->a", 1, "f64", "f32",
                                  [](builder& b, auto&) { einsum<"a,a->a">(input(b, "A"), input(b, "A", dtype::f64)); }));
static_assert(fails(fault::wrong_type, "a->",
                    [](builder& b, auto&) { einsum<"a->">(input(b, "A", dtype::f16)); }));
// After a fault every verb is silent.
static_assert([] {
  builder b;
  b.fail(fault::unknown_axis, "w");
  const symbol none = b.nothing();
  return einsum<"ab,bc->ac">(none, none).id < 0 && gs::sum(none).id < 0 && gs::mean<"ab->a">(none).id < 0 &&
         b.program.nodes.empty();
}());

// Sums and means: a mean divides by the summed extents, which are bound when the program runs.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "GSE");
  if (!has_dims(gs::sum(x), "") || !has_dims(gs::sum<"abc->c">(x), "E") || b.program.nodes.size() != 2)
    return false;
  if (!has_dims(gs::mean<"abc->ca">(x), "EG")) return false;
  const gs::attributes& scale = b.program.nodes.back().attr;
  return b.program.nodes.back().kind == op::scale && scale.factor == 1 && gs::own<gs::scale_attributes>(scale).power == -1 &&
         scale.dims.size() == 1 && b.program.dims[std::size_t(scale.dims[0])].letter == 'S';
}));
static_assert(tracing::holds([](builder& b, auto&) {
  gs::mean(input(b, "GSE"));
  return b.program.nodes.back().attr.dims.size() == 3;
}));

// Three operands are two contractions, the smaller one first.
static_assert(tracing::holds([](builder& b, auto&) {
  b.options.known = {{'A', 2}, {'B', 64}, {'C', 64}, {'D', 64}};
  const symbol y = gs::einsum<"ab,bc,cd->ad">(input(b, "AB"), input(b, "BC"), input(b, "CD"));
  return has_dims(y, "AD") && tracing::count(b.program, gs::op::einsum) == 2 && has_dims({&b, b.program.nodes[0].output()}, "AC");
}));

// numpy's forms: without an output, and with "...", which has the remaining dims of the operands.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = einsum<"...M,ME->...E">(input(b, "GSM"), input(b, "ME"));
  const gs::sharding_rule& r = b.program.nodes.back().rule;
  return has_dims(y, "GSE") && r.in[0][2] == r.in[1][0] &&
         r.in[0][0] == r.out[0][0] && r.in[0][1] == r.out[0][1] && r.in[1][1] == r.out[0][2];
}));
static_assert(tracing::alike([](builder& b) { einsum<"GSM,ME->EGS">(input(b, "GSM"), input(b, "ME")); },
                             [](builder& b) { einsum("GSM,ME", {input(b, "GSM"), input(b, "ME")}); }));
static_assert(tracing::holds([](builder& b, auto&) {
  return has_dims(einsum<"ba">(input(b, "AB")), "BA") && has_dims(einsum<"ii">(input(b, "AA")), "") &&
         has_dims(einsum<"...ij->...ji">(input(b, "ABCD")), "ABDC") &&
         has_dims(einsum<"...,...">(input(b, "ABC"), input(b, "BC")), "ABC") &&
         has_dims(einsum<"a...">(input(b, "ABC")), "BCA");
}));
static_assert(fails(fault::dims_differ, "...,...->...", [](builder& b, auto&) { einsum<"...,...->...">(input(b, "AB"), input(b, "A")); }));
static_assert(fails(fault::ellipsis_not_kept, "...a->a", [](builder& b, auto&) { einsum<"...a->a">(input(b, "AB")); }));
static_assert(fails(fault::rank_mismatch, "...ab->...", [](builder& b, auto&) { einsum<"...ab->...">(input(b, "A")); }));
static_assert(fails(fault::equation_too_large, "...,abcdefgh->...", [](builder& b, auto&) {
  einsum("...,abcdefgh->...", {input(b, "ABCDEFGH"), input(b, "ABCDEFGH")});
}));
// Other verbs require an output.
static_assert(fails(fault::malformed_equation, "ab", [](builder& b, auto&) { gs::sum<"ab">(input(b, "AB")); }));
static_assert(fails(fault::ellipsis_of_einsum, "...a->...", [](builder& b, auto&) { gs::reduce_max<"...a->...">(input(b, "AB")); }));
// Many operands, two at a time: no result has more dims than necessary.
static_assert(tracing::holds([](builder& b, auto&) {
  const gs::list<symbol> x(16, input(b, "A"));
  const symbol y = einsum("a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a->a", x);
  return has_dims(y, "A") && tracing::count(b.program, op::einsum) == 15;
}));

// The paper's dispatch and combine become index operations, for any order of the expert side. Other einsums stay einsums.
constexpr auto routed = [](builder& b) { return gs::top2_gating(input(b, "GSE")); };
static_assert(tracing::holds([](builder& b, auto&) {
  const gs::gating_result r = routed(b);
  const symbol x = input(b, "GSM");
  const symbol a = einsum<"GSEC,GSM->EGCM">(r.dispatch, x), c = einsum<"gsec,gsm->gecm">(r.combine, x);
  const symbol y = einsum<"GSEC,EGCM->GSM">(r.combine, a), z = einsum<"GSEC,GECM->GSM">(r.dispatch, c);
  return has_dims(a, "EGCM") && has_dims(c, "GECM") && has_dims(y, "GSM") && has_dims(z, "GSM") &&
         tracing::count(b.program, op::dispatch) == 2 && tracing::count(b.program, op::combine) == 2;
}));
static_assert(tracing::holds([](builder& b, auto&) {
  const gs::gating_result r = routed(b);
  const symbol x = input(b, "GSM"), t = input(b, "SGM");
  const std::size_t before = std::size_t(tracing::count(b.program, op::einsum));
  einsum<"GSEC,GSM->EGM">(r.dispatch, x);    // sums over the slots
  einsum<"GSEC,GSM->MGEC">(r.dispatch, x);   // model dim not last
  einsum<"GSEC,SGM->EGCM">(r.dispatch, t);   // tokens in another order
  einsum<"GSEC,GSM->GSECM">(r.dispatch, x);  // keeps the tokens
  einsum<"GSEC,GSEC->GS">(r.dispatch, r.combine);
  return tracing::count(b.program, op::einsum) == int(before) + 5 &&
         tracing::count(b.program, op::dispatch) == 0;
}));
static_assert(tracing::holds([](builder& b, auto&) {
  b.options.sparse_one_hot = false;
  const gs::gating_result r = routed(b);
  einsum<"GSEC,GSM->EGCM">(r.dispatch, input(b, "GSM"));
  return b.program.nodes.back().kind == op::einsum;
}));

// An equation that is known at run time gives the same nodes, on the line of its call.
static_assert(tracing::alike([](builder& b) { einsum<"GSM,ME->GSE">(input(b, "GSM"), input(b, "ME")); },
                             [](builder& b) { einsum("GSM,ME->GSE", {input(b, "GSM"), input(b, "ME")}); }));
static_assert(tracing::alike([](builder& b) { einsum<"ab,bc,cd->ad">(input(b, "AB"), input(b, "BC"), input(b, "CD")); },
                             [](builder& b) {
                               const gs::list<symbol> x{input(b, "AB"), input(b, "BC"), input(b, "CD")};
                               einsum("ab,bc,cd->ad", x);
                             }));
static_assert(tracing::alike([](builder& b) { gs::mean<"aba->b">(input(b, "ABA")), gs::sum<"ab->b">(input(b, "AB")); },
                             [](builder& b) { gs::mean("aba->b", input(b, "ABA")), gs::sum("ab->b", input(b, "AB")); }));
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB");
  const std::uint32_t before = __LINE__;
  einsum("ab->ba", {x});
  return b.program.nodes.back().place.line == before + 1;
}));
// A wrong equation is a fault of the program.
static_assert([] {
  const gs::diagnostic p = tracing::problem_of([](builder& b, auto&) {
    const symbol y = einsum("ab;bc->ac", {input(b, "AB"), input(b, "BC")});
    gs::sum(y), gs::mean("ab->a", y);
  });
  return p.what == fault::malformed_equation && p.subject.view() == "ab;bc->ac" && p.first == 2 && p.line > 0;
}());
static_assert(fails(fault::operand_count, "ab->a", [](builder& b, auto&) { einsum("ab->a", {input(b, "AB"), input(b, "AB")}); }));
static_assert(fails(fault::index_in_no_operand, "ab->c", [](builder& b, auto&) { gs::sum("ab->c", input(b, "AB")); }));
static_assert(fails(fault::rank_mismatch, "ab->a", [](builder& b, auto&) { gs::mean("ab->a", input(b, "ABC")); }));

// A misspelt letter would give a product of two sums. Sums over different dims, or over two dims of one operand, are allowed.
constexpr bool misspelt(std::string_view text, std::string_view both, std::string_view x, std::string_view y) {
  const gs::diagnostic p = tracing::problem_of([=](builder& b, auto&) { einsum(text, {input(b, x), input(b, y)}); });
  return p.what == fault::letters_of_one_dim && p.subject.view() == text && p.word.view() == both && p.line > 0;
}
static_assert(misspelt("BN,MH->BH", "N, M", "BM", "MH") && misspelt("EGCN,EMH->EGCH", "N, M", "EGCM", "EMH"));
static_assert(misspelt("ABK,CDJ->ABCD", "K, J", "ABK", "CDK"));
static_assert(fails(fault::letters_of_one_dim, "BN,MH->BH",
                    [](builder& b, auto&) { gs::einsum<"BN,MH->BH">(input(b, "BM"), input(b, "MH")); }));
static_assert(fails(fault::letters_of_one_dim, "BM,NH,HO->BO", [](builder& b, auto&) {
  einsum("BM,NH,HO->BO", {input(b, "BM"), input(b, "MH"), input(b, "HO")});
}));
static_assert(tracing::holds([](builder& b, auto&) {
  return has_dims(einsum("BN,MH->BH", {input(b, "BN"), input(b, "MH")}), "BH") &&
         has_dims(einsum("BKL,BH->BH", {input(b, "BKK"), input(b, "BH")}), "BH") &&
         has_dims(einsum("BK,LH->BLH", {input(b, "BK"), input(b, "KH")}), "BKH");
}));

// The mean of a diagonal is over its elements.
static_assert(tracing::holds([](gs::builder& b, auto&) {
  gs::mean<"aab->b">(tracing::input(b, "AAB"));
  return b.program.nodes.back().attr.dims.size() == 1;
}));

}  // namespace
