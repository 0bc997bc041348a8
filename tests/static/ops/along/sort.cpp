// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/along/sort.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::dtype, gs::fault;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto&) {
  const gs::sorted s = gs::sort(input(b, "AB"), 0);
  return has_dims(s.values, "AB") && has_dims(s.ids, "AB") && s.ids.get().type == dtype::i32 && b.program.nodes.back().rule.blocked == 1;
}));
static_assert(tracing::holds([](builder& b, auto&) {
  const gs::sorted s = gs::top_k(input(b, "AB"), 3);
  return has_dims(s.values, "A#") && has_dims(s.ids, "A#") && b.program.nodes.back().rule.blocked == 0;
}));
static_assert(fails(fault::no_such_dim, "sort", [](builder& b, auto&) { gs::sort(input(b, "AB"), -3); }));
static_assert(tracing::out_of_range("top_k", "k", {0}, [](builder& b, auto&) { gs::top_k(input(b, "AB"), 0); }));
static_assert(tracing::out_of_range("top_k", "k, extent of x", {3, 2}, [](builder& b, auto&) {
  b.options.known.set('B', 2);
  gs::top_k(input(b, "AB"), 3);
}));
static_assert(tracing::wrong_type("sort", 0, "i32", "f32, f64", [](builder& b, auto&) { gs::sort(input(b, "AB", dtype::i32)); }));

}  // namespace
