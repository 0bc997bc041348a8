// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/along/cumsum.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::fault, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = gs::cumsum(input(b, "ABC"), -2, true);
  const gs::node& n = b.program.nodes.back();
  return has_dims(y, "ABC") && n.attr.dim == 1 && gs::own<gs::cumsum_attributes>(n).exclusive && n.rule.blocked == 0;
}));
static_assert(fails(fault::no_such_dim, "cumsum", [](builder& b, auto&) { gs::cumsum(input(b, "AB"), 2); }));

}  // namespace
