// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include "communication.hpp"

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P;
using communication::plan_of;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;

// A form that was made once is used again: one exchange for two readers.
inline constexpr auto twice = [](auto&, auto x, auto y) {
  auto z = gs::annotate<P<none, "x">>(x);
  return gs::einsum<"AB,AB->">(z, y) + gs::einsum<"AB,AB->">(x, y);
};
static_assert(plan_of<twice, mesh, in<"AB", P<"x", none>>, in<"AB", P<none, "x">>>.count(op::all_to_all) ==
              1);

// Reading a parameter after its update is refused, also under another name and through another layout.
template <int Way>
inline constexpr auto late_read = [](auto& m, auto x, auto rate) {
  auto w = m.param("w", "AB", P<none, none>{}, gs::init::zeros());
  auto renamed = gs::annotate<P<none, "x">>(w), merged = gs::merge_dims<0>(w);
  gs::adam{}.minimize(m, gs::sum(gs::relu(gs::einsum<"CA,AB->CB">(x, w))), rate);
  if (Way == 0) return w * w;
  if (Way == 1) return renamed * renamed;
  if (Way == 2) return merged;
  return x;
};
template <int Way>
constexpr gs::diagnostic problem_of_late_read =
    gs::detail::build_program<late_read<Way>, mesh, in<"CA", P<"x", none>>, in<"">>().problem;
static_assert(problem_of_late_read<0>.what == gs::fault::read_after_update &&
              problem_of_late_read<0>.subject.view() == "w");
static_assert(problem_of_late_read<1>.what == gs::fault::read_after_update &&
              problem_of_late_read<1>.subject.view() == "w");
static_assert(problem_of_late_read<2>.what == gs::fault::read_after_update &&
              problem_of_late_read<2>.subject.view() == "w");
static_assert(!problem_of_late_read<3>);

}  // namespace
