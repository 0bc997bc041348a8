// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/grad/bypasses.hpp>
#include <gshard/core/trace/broadcast.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/moe/routing/routing.hpp>

#include "../../tracing.hpp"

#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::builder, gs::fault, gs::symbol;
using tracing::fails, tracing::input, tracing::reads;

namespace {

/// The last node as written, if the gradient with respect to a tensor is wanted.
constexpr gs::node last_as_written(builder& b, symbol wanted) {
  std::vector<char> flags(b.program.values.size(), 0);
  flags[std::size_t(wanted.id)] = 1;
  gs::detail::wanted_bypasses found;
  found.find(b, flags.data());
  return found.as_written(b.program.nodes.back());
}

// A map of a broadcast of a broadcast: if either gradient is wanted, the map reads its original operand.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "A"), y = input(b, "AB"), first = gs::broadcast<"a,ab->ba">(x, y), second = gs::broadcast<"ba->ab">(first);
  gs::relu(second);
  const gs::node plain = last_as_written(b, x), by_first = last_as_written(b, first), by_second = last_as_written(b, second);
  return plain.in[0] == x.id && reads(plain.rule.in[0], {0}) && by_first.in[0] == second.id && by_second.in[0] == second.id &&
         reads(by_second.rule.in[0], {0, 1});
}));
// A dispatch is the einsum of a one-hot tensor.
static_assert(tracing::holds([](builder& b, auto&) {
  const gs::gating_result gating = gs::top2_gating(input(b, "GSE"));
  const symbol x = input(b, "GSM");
  gs::einsum<"GSEC,GSM->EGCM">(gating.dispatch, x);
  const gs::node n = last_as_written(b, gating.dispatch);
  return last_as_written(b, gating.combine).kind == op::dispatch && n.kind == op::einsum && n.inputs == 2 && n.in[0] == gating.dispatch.id &&
         n.in[1] == x.id && n.rule.in[0].size() == 4 && n.rule.in[1].size() == 3;
}));

}  // namespace
