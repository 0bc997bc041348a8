// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/grad/differentiator.hpp>
#include <gshard/ops/along/cumsum.hpp>
#include <gshard/ops/random/random.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::fault, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

// The gradient of a tensor is the sum of what its readers add. A tensor that nothing reads has zeros.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB"), unused = input(b, "A");
  const gs::list<symbol> d = gs::gradients(gs::sum(gs::cumsum(x, 0)) + gs::sum(x), {x, unused});
  return has_dims(d[0], "AB") && has_dims(d[1], "A") && tracing::count(b.program, gs::op::cumsum) == 2;
}));
// An operation without a gradient in its rules, or without rules.
static_assert(fails(fault::not_differentiable, "random", [](builder& b, auto&) {
  const symbol x = input(b, "A");
  const symbol y{&b, b.add_node(gs::op::random, {x.id}, gs::sharding_rule{}, {}, {{x.get().dims, x.get().type}})};
  gs::gradients(gs::sum(y), {x});
}));
// The rule of a gradient: operands, the gradient of the result, results like operands.
static_assert([] {
  gs::node n;
  n.rule.in[0] = gs::detail::counting(2);
  n.rule.in[1] = gs::detail::counting(1, 1);
  n.rule.out[0] = gs::detail::counting(1);
  const gs::sharding_rule r = gs::detail::rule_of_gradient(n, {1}, {0});
  return r.in[0].same(n.rule.in[1]) && r.in[1].same(n.rule.out[0]) && r.out[0].same(n.rule.in[0]);
}());

}  // namespace
