// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/moe/routing/dropless.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/moe/routing/grouped_product.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::symbol;
using tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto& m) {
  const gs::expert_row_routing r = gs::send_rows(gs::top_k_gating(input(b, "GSE")), input(b, "GSM"), 2);
  const symbol w = gs::expert_param(m, r, "w", "MH", gs::init::zeros()), y = gs::grouped_product(r, r.rows, w);
  const gs::node& n = b.program.nodes.back();
  return n.kind == gs::op::grouped_product && y.get().dims[3] == w.get().dims[3] && n.rule.is_blocked(gs::detail::route::expert) &&
         gs::detail::counts_of_products(b.program, n) == r.count.id;
}));

}  // namespace
