// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/window/reverse.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::fault, gs::symbol;
using tracing::fails, tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB");
  return gs::reverse(x, gs::list<int>{}).id == x.id && b.program.nodes.empty();
}));
static_assert(fails(fault::no_such_dim, "reverse", [](builder& b, auto&) { gs::reverse(input(b, "AB"), {0, 2}); }));

}  // namespace
