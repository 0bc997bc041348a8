// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/rows/layer_norm.hpp>

#include <gshard/core/grad/differentiate.hpp>
#include <gshard/ops/reduce/reduce.hpp>

#include "../../tracing.hpp"

#include <array>
#include <cstdint>

namespace gs = gshard;
using gs::builder, gs::fault, gs::P, gs::symbol;
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

// Of a vector, the gradients of gamma and beta are as large as that of x: by blocks, those that are wanted complete are gathered.
constexpr std::int64_t price_by_blocks(bool of_x, bool of_gamma, bool of_beta) {
  std::int64_t price = 0;
  (void)tracing::holds([&](builder& b, auto&) {
    const std::array all{input(b, "M", P<"x">{}), input(b, "M", P<"x">{}), input(b, "M", P<"x">{})};
    gs::gradients(gs::sum(input(b, "M") * gs::layer_norm(all[0], all[1], all[2])), all);
    gs::graph& g = b.program;
    for (const gs::node& n : g.nodes) {
      if (n.kind != gs::op::layer_norm_grad) continue;
      for (int i = 0; i < 3; ++i) g.at(n.input(i)).layout = g.at(n.output(i)).layout = g.at(all[0].id).layout;
      for (int o = 0; o < 3; ++o)
        if (o == 0 ? of_x : o == 1 ? of_gamma : of_beta) g.at(n.output(o)).layout = gs::sharding::replicated(1);
      gs::extents e = gs::detail::assume_extents(g.dims, tracing::mesh, gs::dims{{'M', 4096}}, 1000);
      for (int& extent : e.axes) extent = 4;
      price = gs::detail::decompose_cost(g, n, e).by_rule();
    }
    return true;
  });
  return price;
}
static_assert(price_by_blocks(false, false, false) > 4 * 1000);
static_assert(price_by_blocks(true, false, false) - price_by_blocks(false, false, false) == 1000 + 3 * 1024 * 4);
static_assert(price_by_blocks(false, true, false) == price_by_blocks(true, false, false));
static_assert(price_by_blocks(true, true, true) - price_by_blocks(false, true, false) == 2 * (1000 + 3 * 1024 * 4));

}  // namespace
