// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/program/program.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/moe/routing/routing.hpp>
#include <gshard/train/adam.hpp>

#include <array>
#include <cstdint>
#include <tuple>
#include <type_traits>

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;

// Inputs are options of the program, in order. The results of a model are the outputs: none, one, several.
inline constexpr auto two = [](auto& m, auto x, auto y) {
  m.param("unused", "C", gs::init::zeros());
  return std::tuple{y, x};
};
using swapped =
    gs::program<two, mesh, in<"AB", P<"x", none>>, gs::extent<'A', 8>, in<"C", void, std::int32_t>>;
static_assert(
    std::is_same_v<swapped::inputs, std::tuple<in<"AB", P<"x", none>>, in<"C", void, std::int32_t>>>);
// The text of an input's dims may state its sharding. Its options may have any order.
static_assert(std::is_same_v<in<"A@x,B">::layout, P<"x", none>> && in<"A@x,B">::letters == "AB" && std::is_void_v<in<"AB">::layout>);
using spec_last = in<"AB", double, P<"x", none>>;
static_assert(std::is_same_v<spec_last::layout, P<"x", none>> && std::is_same_v<spec_last::element, double>);
static_assert(in<"A,B@x", gs::column_major, double>::is_column_major && !in<"A,B@x", gs::row_major>::is_column_major);
static_assert(std::is_same_v<in<"A,B@x", gs::column_major, double>::element, double> && std::is_same_v<in<"", void>::element, float>);
static_assert(std::is_same_v<swapped::mesh, mesh>);
static_assert(swapped::plan.inputs.size() == 2 && swapped::plan.outputs.size() == 2 &&
              swapped::plan.parameters.size() == 1);
static_assert(swapped::plan.outputs[0].value == swapped::plan.inputs[1].value &&
              swapped::plan.outputs[1].value == swapped::plan.inputs[0].value);
static_assert(swapped::plan.at(swapped::plan.inputs[1].value).type == gs::dtype::i32 &&
              swapped::plan.inputs[0].name.view() == "AB");

inline constexpr auto nothing = [](auto&, auto) {};
static_assert(gs::program<nothing, mesh, in<"A">>::plan.outputs.empty() &&
              gs::program<nothing, mesh, in<"A">>::plan.steps.empty());
inline constexpr auto list = [](auto&, auto x) { return std::array{x, gs::relu(x), x}; };
static_assert(gs::program<list, mesh, in<"A">>::plan.outputs.size() == 3);
inline constexpr auto no_input = [](auto& m) {
  return gs::sum(m.param("w", "A", P<"x">{}, gs::init::constant(1)));
};
static_assert(gs::program<no_input, mesh>::plan.inputs.empty() &&
              gs::program<no_input, mesh>::plan.count(op::all_reduce) == 1);
// A model can be a function or a lambda.
constexpr gs::symbol doubled(const gs::parameter_scope&, gs::symbol x) {
  return 2.0 * x;
}
static_assert(gs::program<doubled, mesh, in<"A">>::plan.count(op::scale) == 1);

// The element type of parameters.
inline constexpr auto dense = [](auto& m, auto x) {
  return gs::einsum<"AB,BC->AC">(x, m.param("w", "BC", gs::init::zeros()));
};
using in_double = gs::program<dense, mesh, in<"AB", void, double>, gs::element<double>>;
static_assert(in_double::plan.at(in_double::plan.parameters[0].value).type == gs::dtype::f64);
static_assert(in_double::plan.at(in_double::plan.outputs[0].value).type == gs::dtype::f64);

// Inputs without a layout get one from their neighbors.
inline constexpr auto add = [](auto&, auto x, auto y) { return x + y; };
using added = gs::program<add, mesh, in<"AB", P<"x", none>>, in<"AB">>;
static_assert(added::plan.at(added::plan.inputs[1].value).layout.dim_of(0) == 0 &&
              added::plan.collectives() == 0);

// One-hot einsums run by index, or as written. An annotation of the mask, as in the paper's Algorithm 2, keeps two exchanges.
template <bool Annotated>
inline constexpr auto moe = [](auto& m, auto x, auto gates) {
  auto wi = m.param("wi", "EMH", P<"x", none, none>{}, gs::init::zeros()),
       wo = m.param("wo", "EHM", P<"x", none, none>{}, gs::init::zeros());
  auto r = gs::top2_gating(gates);
  if (Annotated) r.combine = gs::annotate<P<"x", none, none, none>>(r.combine);
  auto h = gs::relu(gs::einsum<"EGCM,EMH->EGCH">(gs::einsum<"GSEC,GSM->EGCM">(r.dispatch, x), wi));
  return gs::einsum<"GSEC,GECM->GSM">(r.combine, gs::einsum<"EGCH,EHM->GECM">(h, wo));
};
template <bool Annotated, class... Options>
using moe_program = gs::program<moe<Annotated>, mesh, in<"GSM", P<"x", none, none>>, in<"GSE">, Options...>;
static_assert(moe_program<false>::plan.count(op::einsum) == 2 && moe_program<false>::plan.collectives() == 2);
using dense_moe = moe_program<true, gs::dense_one_hot>;
static_assert(dense_moe::plan.count(op::einsum) == 4 && dense_moe::plan.count(op::dispatch) == 0);
static_assert(dense_moe::plan.count(op::all_to_all) == 2 && dense_moe::plan.collectives() == 2);

// Tables have exactly the size of their contents.
static_assert(swapped::plan.values.size() == 3 && swapped::plan.lifetimes.size() == 3);

}  // namespace
