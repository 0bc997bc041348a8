// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include "communication.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <tuple>

// Each operation moves the same data as the paper's partitioner (arXiv 2006.16668 sections 3.3 and 5.3), and nothing else.
namespace gs = gshard;
namespace op = gs::op;
using gs::any, gs::axes, gs::in, gs::none, gs::P, gs::partial, gs::plan_view;
using communication::output_of, communication::plan_of, communication::sends;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;
using mesh2 = gs::mesh<gs::axis<"x">, gs::axis<"y">>;

constexpr const gs::value& input_of(const plan_view& p, gs::op_ref kind, int i) {
  return p.at(std::find_if(p.steps.begin(), p.steps.end(), [&](const gs::node& s) {
                return s.kind == kind;
              })->input(i));
}
inline constexpr auto matmul = [](auto&, auto x, auto w) { return gs::einsum<"AB,BC->AC">(x, w); };
inline constexpr auto batched = [](auto&, auto x, auto w) { return gs::einsum<"GAB,GBC->GAC">(x, w); };
inline constexpr auto add = [](auto&, auto x, auto y) { return x + y; };

// --- Table 4 of the paper ---

// Add(A,A->A), A sharded: nothing.
static_assert(sends(plan_of<add, mesh, in<"AB", P<"x", none>>, in<"AB", P<"x", none>>>, {}));
// Matmul(AB,BC->AC), B sharded: a sum.
using contracted = gs::program<matmul, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>>;
static_assert(sends(plan_of<matmul, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>>, {op::all_reduce}));
// A sharded: nothing. C sharded: nothing.
static_assert(sends(plan_of<matmul, mesh, in<"AB", P<"x", none>>, in<"BC", P<none, none>>>, {}));
static_assert(sends(plan_of<matmul, mesh, in<"AB", P<none, none>>, in<"BC", P<none, "x">>>, {}));
// A and C over the same devices: one operand is gathered, the smaller one.
static_assert(sends(plan_of<matmul, mesh, in<"AB", P<"x", none>>, in<"BC", P<none, "x">>>, {op::all_gather}));
using tall = gs::program<matmul, mesh, in<"AB", P<"x", none>>, in<"BC", P<none, "x">>, gs::extent<'A', 4096>,
                         gs::extent<'C', 64>>;
using wide = gs::program<matmul, mesh, in<"AB", P<"x", none>>, in<"BC", P<none, "x">>, gs::extent<'A', 64>,
                         gs::extent<'C', 4096>>;
constexpr std::int32_t gathered(const plan_view& p) {
  return std::find_if(p.steps.begin(), p.steps.end(),
                      [](const gs::node& s) { return s.kind == op::all_gather; })
      ->input(0);
}
static_assert(gathered(tall::plan) == tall::plan.inputs[1].value &&
              gathered(wide::plan) == wide::plan.inputs[0].value);
// A and C over different axes: nothing.
static_assert(sends(plan_of<matmul, mesh2, in<"AB", P<"x", none>>, in<"BC", P<none, "y">>>, {}));
// Reduce(AB->A) and Reduce(AB->B), A sharded.
inline constexpr auto sum_rows = [](auto&, auto x) { return gs::sum<"AB->A">(x); };
inline constexpr auto sum_columns = [](auto&, auto x) { return gs::sum<"AB->B">(x); };
static_assert(sends(plan_of<sum_rows, mesh, in<"AB", P<"x", none>>>, {}));
static_assert(sends(plan_of<sum_columns, mesh, in<"AB", P<"x", none>>>, {op::all_reduce}));
// Einsum(GSEC,GSM->EGCM), G sharded, result to be sharded over E: an exchange.
inline constexpr auto dispatch = [](auto&, auto mask, auto x) {
  return gs::annotate<P<"x", none, none, none>>(gs::einsum<"GSEC,GSM->EGCM">(mask, x));
};
static_assert(
    sends(plan_of<dispatch, mesh, in<"GSEC", P<"x", none, none, none>>, in<"GSM", P<"x", none, none>>>,
          {op::all_to_all}));

// --- Section 3.3 ---

// Equally sharded batch dims: no communication. A replicated operand is sliced.
static_assert(sends(plan_of<batched, mesh, in<"GAB", P<"x", none, none>>, in<"GBC", P<"x", none, none>>>,
                    {}));
using sliced = gs::program<batched, mesh, in<"GAB", P<"x", none, none>>, in<"GBC", P<none, none, none>>>;
static_assert(sends(sliced::plan, {}) && sliced::plan.count(op::slice) == 1);
// Operands sharded along different dims: one is exchanged.
static_assert(sends(plan_of<batched, mesh, in<"GAB", P<"x", none, none>>, in<"GBC", P<none, none, "x">>>,
                    {op::all_to_all}));
// Sharded along the contracted dim on one side: the other is sliced.
static_assert(sends(plan_of<matmul, mesh, in<"AB", P<none, "x">>, in<"BC", P<none, none>>>,
                    {op::all_reduce}));
// A sum that should be sharded is scattered, not all-reduced.
inline constexpr auto scattered = [](auto&, auto x, auto w) {
  return gs::annotate<P<"x", none>>(gs::einsum<"AB,BC->AC">(x, w));
};
static_assert(sends(plan_of<scattered, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>>,
                    {op::reduce_scatter}));
// Two axes, each with its own dim: A over x, B over y.
static_assert(sends(plan_of<matmul, mesh2, in<"AB", P<"x", "y">>, in<"BC", P<"y", none>>>, {op::all_reduce}));

// --- partial sums ---

// They pass through linear operations and are completed once, at the latest point before they grow.
inline constexpr auto linear = [](auto&, auto x, auto w) {
  auto y = gs::einsum<"AB,BC->AC">(x, w);
  return gs::sum<"AC->A">(2.0 * y - gs::einsum<"CA->AC">(gs::einsum<"AB,BC->CA">(x, w)));
};
static_assert(sends(plan_of<linear, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>>, {op::all_reduce}));
static_assert(input_of(gs::program<linear, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>>::plan,
                       op::all_reduce, 0)
                  .rank() == 1);
// But not through a product with a tensor that is not constant, nor through a nonlinear function.
inline constexpr auto nonlinear = [](auto&, auto x, auto w) {
  auto y = gs::einsum<"AB,BC->AC">(x, w);
  return gs::sum(gs::relu(y));
};
static_assert(sends(plan_of<nonlinear, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>>,
                    {op::all_reduce}));
// If one reader needs a complete sum, it is completed for all, in any order of readers.
inline constexpr auto both = [](auto&, auto x, auto w) {
  auto y = gs::einsum<"AB,BC->AC">(x, w);
  return std::tuple{2.0 * y, gs::relu(y), y - gs::relu(y)};
};
static_assert(sends(plan_of<both, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>>, {op::all_reduce}));
// Partial and complete tensors cannot be added: the partial sum is completed first.
static_assert(sends(plan_of<add, mesh, in<"AB", P<none, none, partial<"x">>>, in<"AB", P<none, none>>>,
                    {op::all_reduce}));
static_assert(
    sends(plan_of<add, mesh, in<"AB", P<none, none, partial<"x">>>, in<"AB", P<none, none, partial<"x">>>>,
          {op::all_reduce}));
// Outputs are complete, unless the program has partial_outputs.
static_assert(
    sends(plan_of<matmul, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>, gs::partial_outputs>, {}));
static_assert(output_of(gs::program<matmul, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>,
                                    gs::partial_outputs>::plan)
                  .layout.partial == 1);
static_assert(output_of(contracted::plan).layout.partial == 0);

// --- rows, diagonals, embeddings: only a dim that must be whole is gathered, or its axes move to another dim ---

inline constexpr auto softmax = [](auto&, auto x) { return gs::softmax(x); };
static_assert(sends(plan_of<softmax, mesh, in<"AB", P<"x", none>>>, {}));
static_assert(sends(plan_of<softmax, mesh, in<"AB", P<none, "x">>>, {op::all_reduce, op::all_reduce}));
inline constexpr auto ordered = [](auto&, auto x) { return gs::sort(x).values; };
static_assert(sends(plan_of<ordered, mesh, in<"AB", P<none, "x">>, gs::extent<'A', 1 << 12>, gs::extent<'B', 1 << 12>>,
                    {op::all_to_all}));
inline constexpr auto diagonal = [](auto&, auto x) { return gs::einsum<"AA->A">(x); };
static_assert(sends(plan_of<diagonal, mesh, in<"AA", P<"x", none>>>, {op::all_gather}));
static_assert(sends(plan_of<diagonal, mesh2, in<"AA", P<"x", "y">>>, {op::all_gather}));
inline constexpr auto cut_diagonal = [](auto&, auto x) {
  return gs::annotate<P<"x">>(gs::einsum<"AA->A">(x));
};
static_assert(sends(plan_of<cut_diagonal, mesh, in<"AA", P<none, none>>>, {}));
inline constexpr auto embed = [](auto&, auto table, auto ids) { return gs::gather(table, ids); };
static_assert(sends(plan_of<embed, mesh, in<"VM", P<none, none>>, in<"BS", P<"x", none>, std::int32_t>>, {}));
static_assert(sends(plan_of<embed, mesh, in<"VM", P<none, "x">>, in<"BS", P<none, none>, std::int32_t>>, {}));

// --- annotations are moves ---

template <class To>
inline constexpr auto move_to = [](auto&, auto x) { return gs::annotate<To>(x); };
static_assert(sends(plan_of<move_to<P<none, "x">>, mesh, in<"AB", P<"x", none>>>, {op::all_to_all}));
static_assert(sends(plan_of<move_to<P<none, none>>, mesh, in<"AB", P<"x", none>>>, {op::all_gather}));
static_assert(sends(plan_of<move_to<P<"x", none>>, mesh, in<"AB", P<none, none>>>, {}));
static_assert(sends(plan_of<move_to<P<none, axes<"x", "y">>>, mesh2, in<"AB", P<axes<"x", "y">, none>>>,
                    {op::all_to_all}));
// --- unused results are not computed ---

inline constexpr auto dead = [](auto& m, auto x) {
  auto unused = gs::einsum<"AB,BC->AC">(x, m.param("w", "BC", gs::init::zeros()));
  gs::softmax(gs::relu(unused));
  return gs::relu(x);
};
static_assert(plan_of<dead, mesh, in<"AB", P<none, "x">>>.steps.size() == 1);
inline constexpr auto identity = [](auto&, auto x) { return x; };
static_assert(plan_of<identity, mesh, in<"AB", P<none, "x">>>.steps.empty());

// --- updates ---

// A replicated parameter with a sharded gradient: the state is sharded as well, and only the parameter is gathered.
inline constexpr auto sharded_state = [](auto& m, auto x, auto rate) {
  auto w = m.param("w", "AB", P<none, none>{}, gs::init::zeros());
  auto h = gs::annotate<P<none, "x">>(gs::einsum<"CA,AB->CB">(x, w));
  gs::adam{}.minimize(m, gs::sum(h * h), rate);
};
constexpr plan_view updated = plan_of<sharded_state, mesh, in<"CA", P<none, none>>, in<"">>;
static_assert(sends(updated, {op::all_gather}));
static_assert(updated.at(updated.find("w")->value).layout.used() == 0 &&
              updated.at(updated.find("adam.m.w")->value).layout.dim_of(0) == 1);
static_assert(
    updated.at(updated.find("w")->updated).layout.same_layout(updated.at(updated.find("w")->value).layout));

// --- an annotation that changes nothing moves nothing, and neither does its gradient ---

inline constexpr auto barrier = [](auto& m, auto x) {
  auto w = m.param("w", "AB", P<"x", none>{}, gs::init::zeros());
  auto y = gs::propagation_barrier(x * w);
  return std::tuple{y, gs::gradients(gs::sum(y), std::array{x})[0]};
};
constexpr plan_view behind_barrier = plan_of<barrier, mesh2, in<"AB", P<"x", none>>>;
static_assert(behind_barrier.collectives() == 0);
static_assert(behind_barrier.at(behind_barrier.outputs[0].value).layout.used() == 1);

// --- Megatron's layer: columns, then rows; one sum forward, one backward, and the sums over the batch ---

inline constexpr auto tensor_parallel = [](auto& m, auto x, auto rate) {
  auto w1 = m.param("w1", "MH", P<none, "y">{}, gs::init::zeros()),
       w2 = m.param("w2", "HM", P<"y", none>{}, gs::init::zeros());
  auto h = gs::relu(gs::einsum<"BM,MH->BH">(gs::softmax(x), w1));
  auto y = x + gs::einsum<"BH,HM->BM">(h, w2);
  auto loss = gs::mean(y * y);
  auto dx = gs::gradients(loss, std::array{x})[0];
  gs::adam{}.minimize(m, loss, rate);
  return std::tuple{loss, dx};
};
constexpr plan_view megatron = plan_of<tensor_parallel, mesh2, in<"BM", P<"x", none>>, in<"">>;
static_assert(megatron.count(op::all_gather) == 0 && megatron.count(op::all_to_all) == 0 &&
              megatron.count(op::slice) == 0);
constexpr int sums_over(const plan_view& p, std::string_view axis) {
  return int(std::count_if(p.steps.begin(), p.steps.end(), [&](const gs::node& s) {
    return s.kind == op::all_reduce && s.attr.axes == 1u << p.mesh.find(axis) &&
           p.at(s.input(0)).rank() > 0;
  }));
}
static_assert(sums_over(megatron, "y") == 2 && sums_over(megatron, "x") == 2);

}  // namespace
