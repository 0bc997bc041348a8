// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/window/pool.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder;
using tracing::has_dims, tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto&) {
  return has_dims(gs::max_pool(input(b, "BX"), {{1, 3, {.low = 1, .high = 1}}}), "BX") && b.program.nodes.back().outputs == 2;
}));
static_assert(tracing::out_of_range("max_pool", ".taps", {0}, [](builder& b, auto&) { gs::max_pool(input(b, "BX"), {{1, 0, {}}}); }));
static_assert(tracing::out_of_range("max_pool", ".dim", {1}, [](builder& b, auto&) {  // given twice
  gs::max_pool(input(b, "BX"), {{1, 2, {}}, {1, 2, {}}});
}));

}  // namespace
