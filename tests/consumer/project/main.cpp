// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A user's program: plans with gshard::plan alone; with gshard::gshard it runs the plan as well.
#if defined(PLAN_ONLY)
#include <gshard/plan.hpp>
#else
#include <gshard/gshard.hpp>
#endif

#if !defined(PLAN_ONLY)
static_assert(GSHARD_HAS_MPI == EXPECTED_MPI);
// Without MPI gshard is configured without xtensor too, though its headers may be there.
#if !EXPECTED_MPI && (GSHARD_HAS_XTENSOR || defined(XTENSOR_ADAPT_HPP))
#error "xtensor is used, and is switched off"
#endif
#endif

namespace gs = gshard;
using gs::none;
using gs::P;

inline constexpr auto dense = [](auto& m, auto x) {
  return gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", P<"x", none>{}, gs::init::constant(1)));
};
using mesh = gs::mesh<gs::axis<"x">>;
using program = gs::program<dense, mesh, gs::in<"BM", P<none, "x">>>;
static_assert(program::plan.count(gs::op::all_reduce) == 1);

int main() {
#if !defined(PLAN_ONLY)
  const std::vector<float> x(3 * 5, 1.0f);
  gs::executable<program> run(gs::simulate<mesh>(2), {{'B', 3}, {'M', 5}, {'H', 4}});
  for (const float y : gs::to_global(run(x)))
    if (y != 5) return 1;
#endif
}
