// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/plan/move_reason.hpp>

#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using why = gs::move_reason::kind;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;
inline constexpr auto product = [](auto&, auto x, auto w) { return gs::softmax(gs::relu(gs::einsum<"AB,BC->AC">(x, w))); };
using sums = gs::program<product, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>>;

constexpr gs::move_reason first_of(const gs::plan_view& plan) {
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    if (gs::traits(plan.steps[i].kind).collective) return gs::reason_of(plan, i);
  return {};
}

static_assert(first_of(sums::plan).why == why::sum);
static_assert(sums::plan.steps[std::size_t(first_of(sums::plan).consumer)].kind == gs::op::map);

inline constexpr auto annotated = [](auto&, auto x) { return gs::annotate<P<none, "x">>(x); };
static_assert(first_of(gs::program<annotated, mesh, in<"AB", P<"x", none>>>::plan).why == why::annotation);

inline constexpr auto rolled = [](auto&, auto x) { return gs::roll(x, 0, 1); };
static_assert(first_of(gs::program<rolled, mesh, in<"A", P<"x">>>::plan).why == why::window);

}  // namespace
