// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/operation_rules.hpp>
#include <gshard/ops/along/cumsum.hpp>
#include <gshard/ops/reduce/argmax.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder;
using tracing::input;

namespace {

// A program knows the rules of the operations that its verbs have added, and those alone.
static_assert(tracing::holds([](builder& b, auto&) {
  gs::cumsum(input(b, "AB"));
  const gs::graph& g = b.program;
  return g.rules_of(gs::op::cumsum).gradient && g.rules_of(gs::op::cumsum).by_blocks && !g.rules_of(gs::op::argmax).gradient &&
         !g.rules_of(gs::op::einsum).gradient && g.rules_of(gs::op::cumsum).of == gs::op::cumsum;
}));

}  // namespace
