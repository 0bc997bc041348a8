// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/loop/scan_rows.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::dtype, gs::symbol;
using tracing::has_dims, tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "TBM"), step = input(b, "", dtype::i32);
  const symbol row = gs::detail::emit_row(x, step);
  const gs::value stack = gs::detail::stack_of(row.get(), x.get().dims[0]);
  return has_dims(row, "BM") && stack.dims == x.get().dims && stack.layout[0].empty() && gs::detail::index_of_row({x.id}, step).id == step.id &&
         gs::detail::index_of_row({x.id, -1, step.id}, step).id != step.id && has_dims(gs::detail::index_before(step, 1), "");
}));

}  // namespace
