// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/trace/iota.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::dtype, gs::symbol;
using tracing::has_dims;

namespace {

static_assert(tracing::holds([](builder& b, auto& m) {
  const symbol i = gs::iota<"TU">(m, 1);
  return has_dims(i, "TU") && i.get().type == dtype::i32 && b.program.nodes.back().inputs == 0 &&
         b.program.nodes.back().attr.dim == 1;
}));

}  // namespace
