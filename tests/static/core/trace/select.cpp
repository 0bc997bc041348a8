// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/plan.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::symbol;
using tracing::has_dims, tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB"), y = input(b, "B");
  return has_dims(gs::select(gs::less(x, y), x, y), "AB") && has_dims(gs::equal(x, x), "AB");
}));

}  // namespace
