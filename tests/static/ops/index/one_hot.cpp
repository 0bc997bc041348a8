// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/index/one_hot.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::dtype, gs::fault, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = gs::one_hot<"E">(input(b, "GS", dtype::i32));
  return has_dims(y, "GSE") && y.get().type == dtype::f32 && gs::one_hot<"E", double>(input(b, "", dtype::i32)).get().type == dtype::f64;
}));
static_assert(tracing::wrong_type("one_hot", 0, "f32", "i32", [](builder& b, auto&) { gs::one_hot<"E">(input(b, "GS")); }));
static_assert(fails(fault::rank_mismatch, "one_hot", [](builder& b, auto&) { gs::one_hot<"EF">(input(b, "G", dtype::i32)); }));

}  // namespace
