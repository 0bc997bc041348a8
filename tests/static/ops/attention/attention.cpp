// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/attention/attention.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::dtype, gs::fault, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = gs::attention(input(b, "BQHD"), input(b, "BKHD"), input(b, "BKHD"), {.causal = true});
  const gs::node& n = b.program.nodes.back();
  return has_dims(y, "BQHD") && has_dims(b.result_of_last(1), "BQH") && tracing::reads(n.rule.in[1], {0, 4, 2, 3}) &&
         n.rule.blocked == (1u << 3 | 1u << 4) && gs::own<gs::attention_attributes>(n).causal && n.inputs == 3;
}));
static_assert(tracing::holds([](builder& b, auto&) {  // grouped queries
  const symbol y = gs::attention(input(b, "QHRD"), input(b, "KHD"), input(b, "KHD"), {.mask = input(b, "K")});
  const gs::node& n = b.program.nodes.back();
  return has_dims(y, "QHRD") && has_dims(b.result_of_last(1), "QHR") && tracing::reads(n.rule.in[2], {4, 1, 3}) &&
         tracing::reads(n.rule.in[3], {4}) && b.program.at(n.input(3)).type == dtype::i32;
}));
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol q = input(b, "BQHD"), k = input(b, "BKHD"), at = input(b, "", dtype::i32);
  const gs::attention_part one = gs::partial_attention(q, k, k), two = gs::partial_attention(q, k, k, {.position = at});
  const gs::attention_part all = gs::merge_attention(one, two);
  return has_dims(all.y, "BQHD") && has_dims(all.log_sum, "BQH");
}));

constexpr auto with = [](std::string_view q, std::string_view k, std::string_view v, double rate = 0) {
  return [=](builder& b, auto&) { gs::attention(input(b, q), input(b, k), input(b, v), {.dropout = rate}); };
};
static_assert(fails(fault::rank_mismatch, "attention", with("QD", "KD", "KD")));
static_assert(fails(fault::rank_mismatch, "attention", with("ABQHRD", "BKHD", "BKHD")));
static_assert(fails(fault::dims_differ, "attention", with("BQHD", "BKHD", "BKHE")));
static_assert(fails(fault::dims_differ, "attention", with("BQHD", "BKGD", "BKGD")));
static_assert(fails(fault::dims_differ, "attention", with("AQHD", "BKHD", "BKHD")));
static_assert(tracing::out_of_range("attention", ".dropout", {}, with("BQHD", "BKHD", "BKHD", 1)));
static_assert(fails(fault::rank_mismatch, ".mask of attention", [](builder& b, auto&) {
  gs::attention(input(b, "BQHD"), input(b, "BKHD"), input(b, "BKHD"), {.mask = input(b, "K")});
}));
static_assert(tracing::wrong_type("partial_attention", ".position", "f32", "i32", [](builder& b, auto&) {
  gs::partial_attention(input(b, "QHD"), input(b, "KHD"), input(b, "KHD"), {.position = input(b, "")});
}));
static_assert(tracing::wrong_type("attention", 1, "f64", "f32", [](builder& b, auto&) {
  gs::attention(input(b, "QHD"), input(b, "KHD", dtype::f64), input(b, "KHD"));
}));

}  // namespace
