// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/pass/decomposer.hpp>
#include <gshard/ops/rows/layer_norm.hpp>
#include <gshard/ops/rows/softmax.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::symbol;
using tracing::input;

namespace {

// Results that were made anew take the places of the old ones, and tensors that several rewrites need are made once.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB"), y = input(b, "AB");
  gs::node n;
  n.kind = gs::op::softmax;
  n.inputs = n.outputs = 1;
  n.in[0] = x.id;
  n.out[0] = y.id;
  gs::detail::decomposer d(b.program, b.mesh);
  d.replace_result_annotated(n, 0, d.in(n, 0));
  const bool named = d.owner().program.nodes.back().output() == y.id && d.owner().program.nodes.back().input(0) == x.id;
  d.share({gs::op::softmax, x.id, y.id, 0.1, {x, y}});
  return named && d.find_shared(gs::op::softmax, x.id, y.id, 0.1) != nullptr && d.find_shared(gs::op::softmax, x.id, y.id, 0.2) == nullptr &&
         d.find_shared(gs::op::layer_norm, x.id, y.id, 0.1) == nullptr;
}));

}  // namespace
