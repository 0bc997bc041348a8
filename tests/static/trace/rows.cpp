// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/trace/rows.hpp>

#include "../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::dtype, gs::fault, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

// Dims that no axis may shard, a bit each.
constexpr unsigned blocked(const builder& b) { return b.program.nodes.back().rule.blocked; }
static_assert(tracing::holds([](builder& b, auto&) { return has_dims(gs::softmax(input(b, "ABC")), "ABC") && blocked(b) == 0; }));
static_assert(tracing::holds([](builder& b, auto&) { return has_dims(gs::softmax(input(b, "A")), "A"); }));
static_assert(fails(fault::rank_mismatch, "softmax", [](builder& b, auto&) { gs::softmax(input(b, "")); }));

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = gs::layer_norm(input(b, "BSM"), input(b, "M"), input(b, "M"), 1e-3);
  const gs::node& n = b.program.nodes.back();
  return has_dims(y, "BSM") && blocked(b) == 0 && tracing::reads(n.rule.in[1], {2}) &&
         gs::own<gs::layer_norm_attributes>(n).epsilon == 1e-3;
}));
static_assert(tracing::problem_of([](builder& b, auto&) {
                gs::layer_norm(input(b, "SM"), input(b, "M"), input(b, "S"));
              }).first == 2);
static_assert(fails(fault::dims_differ, "layer_norm", [](builder& b, auto&) {
  gs::layer_norm(input(b, "SM"), input(b, "SM"), input(b, "M"));
}));

static_assert(tracing::holds([](builder& b, auto&) {
  return has_dims(gs::cross_entropy(input(b, "BTV"), input(b, "BT", dtype::i32), 0.1), "BT") &&
         blocked(b) == 0 && gs::own<gs::cross_entropy_attributes>(b.program.nodes.back()).smoothing == 0.1;
}));
static_assert(tracing::wrong_type("cross_entropy", 1, "f32", "i32",
                                  [](builder& b, auto&) { gs::cross_entropy(input(b, "BV"), input(b, "B")); }));
static_assert(fails(fault::dims_differ, "cross_entropy", [](builder& b, auto&) {
  gs::cross_entropy(input(b, "BTV"), input(b, "TB", dtype::i32));
}));

}  // namespace
