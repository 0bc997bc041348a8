// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/rows/cross_entropy.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::dtype, gs::fault;
using tracing::blocked, tracing::fails, tracing::has_dims, tracing::input;

namespace {

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
