// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/random/dropout.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::symbol;
using tracing::has_dims, tracing::input;

namespace {

// Each has its own key. A rate of 0 adds no operation.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB"), y = gs::dropout(x, 0.1), z = gs::dropout(y, 0.2);
  return has_dims(z, "AB") && b.program.nodes[0].attr.key != b.program.nodes[1].attr.key &&
         gs::own<gs::dropout_attributes>(b.program.nodes[0]).rate == 0.1 && gs::dropout(x, 0).id == x.id &&
         b.program.nodes.size() == 2;
}));
static_assert([] {
  builder b;
  b.fail(gs::fault::unknown_axis, "w");
  return gs::dropout(b.nothing(), 0.5).id < 0;
}());

}  // namespace
