// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/slice.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::fault, gs::symbol;
using tracing::fails, tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB"), y = gs::concat({x, gs::slice(x, 0, 0, 2), x}, 0);
  const gs::node& n = b.program.nodes.back();
  return y.rank() == 2 && n.inputs == 3 && gs::window_row(n, 1, 0) != gs::window_row(n, 2, 0) && gs::window_row(n, 1, 1) == 0;
}));
static_assert(fails(fault::dims_differ, "concat", [](builder& b, auto&) { gs::concat({input(b, "AB"), input(b, "AC")}, 0); }));

}  // namespace
