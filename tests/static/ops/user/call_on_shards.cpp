// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/plan.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
namespace op = gs::op;
using gs::builder, gs::fault, gs::in, gs::none, gs::P, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

constexpr auto nothing = [](auto, auto) {};
constexpr auto nothing_of_two = [](auto, auto, auto) {};
constexpr auto nothing_else = [](auto, auto) {};
[[maybe_unused]] void one_function(int) {}
[[maybe_unused]] void another_function(int) {}

// Ranks compare functions by their names.
static_assert(gs::detail::text_of_function<nothing>() == gs::detail::text_of_function<nothing>());
static_assert(gs::detail::text_of_function<nothing>() != gs::detail::text_of_function<nothing_else>());
static_assert(gs::detail::text_of_function<&one_function>() != gs::detail::text_of_function<&another_function>());

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = gs::call_on_shards<nothing, "BA", P<none, "x">>(input(b, "AB", P<"x", none>{}));
  return has_dims(y, "BA") && y.get().layout.dim_of(0) == 1;
}));
static_assert(fails(fault::not_annotated, "call_on_shards", [](builder& b, auto&) { gs::call_on_shards<nothing, "A", P<none>>(input(b, "A")); }));
static_assert(fails(fault::rank_mismatch, "call_on_shards", [](builder& b, auto&) {
  gs::call_on_shards<nothing, "A", P<none, none>>(input(b, "A", P<none>{}));
}));

// Operands and result have their declared shardings, for any shardings of other tensors.
inline constexpr auto model = [](auto&, auto x, auto y) {
  auto z = gs::call_on_shards<nothing_of_two, "B@x,A">(gs::annotate<P<"x", none>>(x), gs::annotate<P<none, "x">>(y));
  return gs::relu(z);
};
using program = gs::program<model, gs::mesh<gs::axis<"x">>, in<"AB", P<none, "x">>, in<"AB", P<none, "x">>>;
static_assert(program::plan.count(op::all_to_all) == 1 && program::plan.collectives() == 1 && program::plan.count(op::call_on_shards) == 1);

// A declared partial sum is completed where it is needed.
inline constexpr auto summed = [](auto&, auto x) { return gs::call_on_shards<nothing, "B+x">(x); };
using sum = gs::program<summed, gs::mesh<gs::axis<"x">>, in<"AB", P<"x", none>>>;
static_assert(sum::plan.count(op::all_reduce) == 1 && sum::plan.collectives() == 1);

}  // namespace
