// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/trace/rows.hpp>

#include "../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::dtype, gs::fault, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

// The last dim is whole, the others may be cut.
constexpr bool only_last_is_blocked(const builder& b, int rank) {
  for (int d = 0; d < rank; ++d)
    if (b.program.nodes.back().loops.is_blocked(d) != (d == rank - 1)) return false;
  return true;
}
static_assert(tracing::holds([](builder& b, auto&) {
  return has_dims(gs::softmax(input(b, "ABC")), "ABC") && only_last_is_blocked(b, 3);
}));
static_assert(tracing::holds([](builder& b, auto&) {
  return has_dims(gs::softmax(input(b, "A")), "A") && only_last_is_blocked(b, 1);
}));
static_assert(fails(fault::rank_mismatch, "softmax", [](builder& b, auto&) { gs::softmax(input(b, "")); }));

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = gs::layer_norm(input(b, "BSM"), input(b, "M"), input(b, "M"), 1e-3);
  const gs::node& n = b.program.nodes.back();
  return has_dims(y, "BSM") && only_last_is_blocked(b, 3) && tracing::reads(n.loops.in[1], {2}) &&
         n.attr.number[0] == 1e-3;
}));
static_assert(tracing::problem_of([](builder& b, auto&) {
                gs::layer_norm(input(b, "SM"), input(b, "M"), input(b, "S"));
              }).first == 2);
static_assert(fails(fault::dims_differ, "layer_norm", [](builder& b, auto&) {
  gs::layer_norm(input(b, "SM"), input(b, "SM"), input(b, "M"));
}));

static_assert(tracing::holds([](builder& b, auto&) {
  return has_dims(gs::cross_entropy(input(b, "BTV"), input(b, "BT", dtype::i32), 0.1), "BT") &&
         only_last_is_blocked(b, 3) && b.program.nodes.back().attr.number[0] == 0.1;
}));
static_assert(fails(fault::wrong_type, "cross_entropy",
                    [](builder& b, auto&) { gs::cross_entropy(input(b, "BV"), input(b, "B")); }));
static_assert(fails(fault::dims_differ, "cross_entropy", [](builder& b, auto&) {
  gs::cross_entropy(input(b, "BTV"), input(b, "TB", dtype::i32));
}));

}  // namespace
