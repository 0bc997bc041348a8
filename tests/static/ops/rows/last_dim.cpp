// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/rows/last_dim.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::dtype, gs::fault;
using tracing::fails, tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto&) {
  const gs::sharding_rule rule = gs::detail::rows_rule(3);
  return rule.in[0].same(rule.out[0]) && rule.in[0].size() == 3 && rule.blocked == 0 &&
         gs::detail::check_rank(b, input(b, "AB"), 2, "softmax");
}));
static_assert(fails(fault::rank_mismatch, "softmax", [](builder& b, auto&) { gs::detail::check_rank(b, input(b, "A"), 2, "softmax"); }));
static_assert(tracing::wrong_type("softmax", 0, "i32", "f32, f64", [](builder& b, auto&) {
  gs::detail::check_rank(b, input(b, "A", dtype::i32), 1, "softmax");
}));

}  // namespace
