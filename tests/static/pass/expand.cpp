// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/plan.hpp>

#include "../soundness.hpp"

#include <array>

namespace gs = gshard;
using gs::in, gs::none, gs::op, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;

template <auto Model, class... In>
using on_mesh = gs::program<Model, mesh, In...>;

inline constexpr auto softmax = [](auto&, auto x) { return gs::softmax(x); };
inline constexpr auto cumsum = [](auto&, auto x) { return gs::cumsum(x); };
inline constexpr auto best = [](auto&, auto x) { return gs::top_k(x, 2).values; };

// Whole lines keep their kernel and send nothing.
using whole = on_mesh<softmax, in<"AB", P<"x", none>>>;
static_assert(whole::plan.count(op::softmax) == 1 && whole::plan.collectives() == 0);
static_assert(on_mesh<cumsum, in<"AB", P<"x", none>>>::plan.collectives() == 0);
static_assert(on_mesh<best, in<"AB", P<"x", none>>>::plan.collectives() == 0);

// Lines that are cut: one maximum and one sum a row.
using cut = on_mesh<softmax, in<"AB", P<none, "x">>>;
static_assert(soundness::is_sound(cut::plan));
static_assert(cut::plan.count(op::softmax) == 0 && cut::plan.count(op::all_reduce) == 2 && cut::plan.collectives() == 2);
// Nor do rows that are cut as well change that, in a program in which no operand may be gathered unsaid, or backwards.
using mesh2 = gs::mesh<gs::axis<"x">, gs::axis<"y">>;
template <auto Model, class... Options>
using both_cut = gs::program<Model, mesh2, in<"AB", P<"x", "y">>, Options...>;
inline constexpr auto softmax_gradient = [](auto&, auto x) { return gs::gradients(gs::sum(gs::softmax(x) * x), std::array{x})[0]; };
inline constexpr auto norm = [](auto& m, auto x) {
  return gs::layer_norm(x, m.param("gamma", "B", gs::init::constant(1)), m.param("beta", "B", gs::init::zeros()));
};
template <class Program>
constexpr bool sums_rows_alone(int count) {
  for (const gs::node& s : Program::plan.steps)
    for (int i = 0; gs::traits(s.kind).collective && i < s.inputs; ++i)
      if (s.kind != op::all_reduce || Program::plan.at(s.input(i)).rank() > 1) return false;
  return Program::plan.collectives() == count && soundness::is_sound(Program::plan);
}
static_assert(sums_rows_alone<both_cut<softmax>>(2) && sums_rows_alone<both_cut<softmax, gs::visible>>(2));
static_assert(sums_rows_alone<both_cut<softmax_gradient>>(3) && sums_rows_alone<both_cut<norm>>(2));
// One sum a block and row is gathered.
using running = on_mesh<cumsum, in<"AB", P<none, "x">>>;
static_assert(soundness::is_sound(running::plan));
static_assert(running::plan.count(op::all_gather) == 1 && running::plan.collectives() == 1 && running::plan.count(op::block_sum) == 1);
constexpr gs::plan_view running_rows = both_cut<cumsum>::plan;
static_assert(running_rows.count(op::all_gather) == 1 && running_rows.collectives() == 1);
// The best of every block, their values and places.
using candidates = on_mesh<best, in<"AB", P<none, "x">>>;
static_assert(soundness::is_sound(candidates::plan));
static_assert(candidates::plan.count(op::top_k) == 2 && candidates::plan.collectives() <= 2);

}  // namespace
