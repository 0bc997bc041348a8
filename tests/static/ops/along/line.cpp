// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/along/line.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::dtype, gs::fault, gs::symbol;
using tracing::fails, tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "ABC");
  return gs::detail::dim_from(x, -1) == 2 && gs::detail::dim_from(x, 1) == 1 && gs::detail::check_along(x, 0, "sort");
}));
static_assert(fails(fault::no_such_dim, "sort", [](builder& b, auto&) { gs::detail::check_along(input(b, "A"), 1, "sort"); }));
static_assert(tracing::wrong_type("sort", 0, "i32", "f32, f64", [](builder& b, auto&) {
  gs::detail::check_along(input(b, "A", dtype::i32), 0, "sort");
}));

}  // namespace
