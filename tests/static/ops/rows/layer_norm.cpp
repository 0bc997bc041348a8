// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/rows/layer_norm.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::fault, gs::symbol;
using tracing::blocked, tracing::fails, tracing::has_dims, tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = gs::layer_norm(input(b, "BSM"), input(b, "M"), input(b, "M"), 1e-3);
  const gs::node& n = b.program.nodes.back();
  return has_dims(y, "BSM") && blocked(b) == 0 && tracing::reads(n.rule.in[1], {2}) &&
         gs::own<gs::layer_norm_attributes>(n).epsilon == 1e-3;
}));
static_assert(tracing::problem_of([](builder& b, auto&) {
                gs::layer_norm(input(b, "SM"), input(b, "M"), input(b, "S"));
              }).first == 2);
static_assert(fails(fault::dims_differ, "layer_norm", [](builder& b, auto&) {
  gs::layer_norm(input(b, "SM"), input(b, "SM"), input(b, "M"));
}));

}  // namespace
