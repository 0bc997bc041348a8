// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/optim/adam.hpp>
#include <gshard/plan.hpp>

#include "../soundness.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <tuple>

// Each operation moves what the paper's partitioner moves (arXiv 2006.16668 sections 3.3 and 5.3), and
// nothing else.
namespace gs = gshard;
using gs::any, gs::axes, gs::in, gs::none, gs::op, gs::P, gs::partial, gs::plan_view;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;
using mesh2 = gs::mesh<gs::axis<"x">, gs::axis<"y">>;

/// The communication of a plan, in order.
constexpr bool sends(const plan_view& p, std::initializer_list<op> kinds) {
  std::size_t i = 0;
  for (const gs::node& s : p.steps)
    if (gs::traits(s.kind).collective && (i >= kinds.size() || kinds.begin()[i++] != s.kind)) return false;
  return i == kinds.size();
}
constexpr const gs::value& input_of(const plan_view& p, op kind, int i) {
  return p.at(std::find_if(p.steps.begin(), p.steps.end(), [&](const gs::node& s) {
                return s.kind == kind;
              })->input(i));
}
constexpr const gs::value& output_of(const plan_view& p, std::size_t i = 0) {
  return p.at(p.outputs[i].value);
}

inline constexpr auto matmul = [](auto&, auto x, auto w) { return gs::einsum<"AB,BC->AC">(x, w); };
inline constexpr auto batched = [](auto&, auto x, auto w) { return gs::einsum<"GAB,GBC->GAC">(x, w); };
inline constexpr auto add = [](auto&, auto x, auto y) { return x + y; };

template <auto Model, class Mesh, class... Options>
constexpr plan_view plan_of = [] {
  constexpr plan_view p = gs::program<Model, Mesh, Options...>::plan;
  static_assert(soundness::is_sound(p));
  return p;
}();

// --- Table 4 of the paper ---

// Add(A,A->A), A cut: nothing.
static_assert(sends(plan_of<add, mesh, in<"AB", P<"x", none>>, in<"AB", P<"x", none>>>, {}));
// Matmul(AB,BC->AC), B cut: a sum.
using contracted = gs::program<matmul, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>>;
static_assert(sends(plan_of<matmul, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>>, {op::all_reduce}));
// A cut: nothing. C cut: nothing.
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
// Reduce(AB->A) and Reduce(AB->B), A cut.
inline constexpr auto sum_rows = [](auto&, auto x) { return gs::sum<"AB->A">(x); };
inline constexpr auto sum_columns = [](auto&, auto x) { return gs::sum<"AB->B">(x); };
static_assert(sends(plan_of<sum_rows, mesh, in<"AB", P<"x", none>>>, {}));
static_assert(sends(plan_of<sum_columns, mesh, in<"AB", P<"x", none>>>, {op::all_reduce}));
// Einsum(GSEC,GSM->EGCM), G cut, result wanted cut over E: an exchange.
inline constexpr auto dispatch = [](auto&, auto mask, auto x) {
  return gs::annotate<P<"x", none, none, none>>(gs::einsum<"GSEC,GSM->EGCM">(mask, x));
};
static_assert(
    sends(plan_of<dispatch, mesh, in<"GSEC", P<"x", none, none, none>>, in<"GSM", P<"x", none, none>>>,
          {op::all_to_all}));

// --- Section 3.3 ---

// Batch dims cut alike: nothing. An operand that is whole is sliced where it lies.
static_assert(sends(plan_of<batched, mesh, in<"GAB", P<"x", none, none>>, in<"GBC", P<"x", none, none>>>,
                    {}));
using sliced = gs::program<batched, mesh, in<"GAB", P<"x", none, none>>, in<"GBC", P<none, none, none>>>;
static_assert(sends(sliced::plan, {}) && sliced::plan.count(op::slice) == 1);
// Operands cut in different dims: one is exchanged.
static_assert(sends(plan_of<batched, mesh, in<"GAB", P<"x", none, none>>, in<"GBC", P<none, none, "x">>>,
                    {op::all_to_all}));
// Cut in the contracted dim on one side: the other is sliced.
static_assert(sends(plan_of<matmul, mesh, in<"AB", P<none, "x">>, in<"BC", P<none, none>>>,
                    {op::all_reduce}));
// A sum that is wanted cut is scattered, not made whole; one that is wanted in several places is made once.
inline constexpr auto scattered = [](auto&, auto x, auto w) {
  return gs::annotate<P<"x", none>>(gs::einsum<"AB,BC->AC">(x, w));
};
static_assert(sends(plan_of<scattered, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>>,
                    {op::reduce_scatter}));
// Two axes, each with its own part: A over x, B over y.
static_assert(sends(plan_of<matmul, mesh2, in<"AB", P<"x", "y">>, in<"BC", P<"y", none>>>, {op::all_reduce}));

// --- einsums that loop ---

// An operand that is too large to be whole on a device travels block by block; the bytes are those of the gather. By known extents alone.
template <std::int64_t Above>
constexpr plan_view tall_plan =
    plan_of<matmul, mesh, in<"AB", P<"x", none>>, in<"BC", P<none, "x">>, gs::extent<'A', 4096>, gs::extent<'B', 32>, gs::extent<'C', 64>, gs::loop_above<Above>>;
static_assert(sends(tall_plan<32 * 64 * 4>, {op::all_gather}) && sends(tall_plan<32 * 64 * 4 - 1>, {op::looped_einsum}));
static_assert(tall_plan<0>.count(op::einsum) == 0 && gs::traveller(tall_plan<0>.steps[0]) == tall_plan<0>.inputs[1].value &&
              tall_plan<0>.steps[0].attr.integer[0] == 1);
static_assert(output_of(tall_plan<0>).layout.same_layout(output_of(tall::plan).layout));
constexpr std::int64_t bytes_on_four(const plan_view& p) {
  constexpr std::array four{4};
  return p.bytes_received(p.bind({{'A', 4096}, {'B', 32}, {'C', 64}}, four));
}
static_assert(bytes_on_four(tall_plan<0>) == bytes_on_four(tall_plan<1 << 20>) && bytes_on_four(tall_plan<0>) == 3 * 32 * 16 * 4);
static_assert(sends(plan_of<matmul, mesh, in<"AB", P<"x", none>>, in<"BC", P<none, "x">>, gs::loop_above<0>>, {op::all_gather}));
static_assert(sends(plan_of<matmul, mesh, in<"AB", P<"x", none>>, in<"BC", P<none, "x">>, gs::extent<'A', 1 << 20>, gs::extent<'B', 1 << 14>,
                            gs::extent<'C', 1 << 14>>,
                    {op::looped_einsum}));
// The sums of a result that is wanted cut.
inline constexpr auto scattered_on = [](auto&, auto x, auto w) { return gs::relu(gs::annotate<P<"x", none>>(gs::einsum<"AB,BC->AC">(x, w))); };
template <auto Model, class... More>
constexpr plan_view sums_plan = plan_of<Model, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>, gs::extent<'A', 64>, gs::extent<'C', 64>, More...>;
static_assert(sends(sums_plan<scattered>, {op::reduce_scatter}) && sends(sums_plan<scattered, gs::loop_above<0>>, {op::looped_einsum}));
static_assert(sends(sums_plan<scattered_on, gs::loop_above<0>>, {op::looped_einsum}) &&
              gs::sums_travel(sums_plan<scattered, gs::loop_above<0>>.steps[0]));
// Not one that stays pending, or is wanted whole.
static_assert(sends(sums_plan<matmul, gs::loop_above<0>>, {op::all_reduce}));
static_assert(sends(sums_plan<matmul, gs::loop_above<0>, gs::pending_outputs>, {}));
// A contracted index is gathered in turns where devices then hold different parts of the result, as copies must be the same bits.
static_assert(sends(plan_of<matmul, mesh, in<"AB", P<none, "x">>, in<"BC", P<none, "x">>, gs::extent<'A', 8>, gs::extent<'B', 64>, gs::extent<'C', 4096>,
                            gs::loop_above<0>>,
                    {op::looped_einsum}));

// --- pending sums ---

// They run through what is linear and are completed once, as late as that is smaller.
inline constexpr auto linear = [](auto&, auto x, auto w) {
  auto y = gs::einsum<"AB,BC->AC">(x, w);
  return gs::sum<"AC->A">(2.0 * y - gs::einsum<"CA->AC">(gs::einsum<"AB,BC->CA">(x, w)));
};
static_assert(sends(plan_of<linear, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>>, {op::all_reduce}));
static_assert(input_of(gs::program<linear, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>>::plan,
                       op::all_reduce, 0)
                  .rank() == 1);
// Not through a product with anything that is not constant, not through a nonlinear function.
inline constexpr auto nonlinear = [](auto&, auto x, auto w) {
  auto y = gs::einsum<"AB,BC->AC">(x, w);
  return gs::sum(gs::relu(y));
};
static_assert(sends(plan_of<nonlinear, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>>,
                    {op::all_reduce}));
// A sum that somebody needs complete is completed for all, whoever asks first.
inline constexpr auto both = [](auto&, auto x, auto w) {
  auto y = gs::einsum<"AB,BC->AC">(x, w);
  return std::tuple{2.0 * y, gs::relu(y), y - gs::relu(y)};
};
static_assert(sends(plan_of<both, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>>, {op::all_reduce}));
// Pending and complete cannot be added; the sum is completed first.
static_assert(sends(plan_of<add, mesh, in<"AB", P<none, none, partial<"x">>>, in<"AB", P<none, none>>>,
                    {op::all_reduce}));
static_assert(
    sends(plan_of<add, mesh, in<"AB", P<none, none, partial<"x">>>, in<"AB", P<none, none, partial<"x">>>>,
          {op::all_reduce}));
// Outputs are complete unless they are asked for as they are.
static_assert(
    sends(plan_of<matmul, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>, gs::pending_outputs>, {}));
static_assert(output_of(gs::program<matmul, mesh, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>,
                                    gs::pending_outputs>::plan)
                  .layout.partial == 1);
static_assert(output_of(contracted::plan).layout.partial == 0);

// --- rows, diagonals, reshapes, embeddings: what is needed whole is gathered, or lies elsewhere meanwhile, and only that ---

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
inline constexpr auto merge = [](auto&, auto x) { return gs::merge_dims<1>(x); };
static_assert(sends(plan_of<merge, mesh, in<"ABC", P<"x", none, none>>>, {}));
// Blocks of the first dim are blocks of both where the extents divide; where they may not, borders are exchanged.
static_assert(sends(plan_of<merge, gs::mesh<gs::axis<"x", 4>>, in<"ABC", P<none, "x", none>>, gs::extent<'B', 8>, gs::extent<'C', 3>>, {}));
static_assert(sends(plan_of<merge, mesh, in<"ABC", P<none, "x", none>>>, {op::collective_permute}));
// The layout that is wanted of the result cuts no rows where there is one alone.
inline constexpr auto merge_and_cut = [](auto&, auto x) { return gs::annotate<P<none, "x">>(gs::merge_dims<1>(x)); };
static_assert(sends(plan_of<merge_and_cut, gs::mesh<gs::axis<"x", 4>>, in<"ABC", P<none, none, none>>, gs::extent<'B', 1>, gs::extent<'C', 8>>, {}));
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
// A version that was made once is used again: one exchange for two readers.
inline constexpr auto twice = [](auto&, auto x, auto y) {
  auto z = gs::annotate<P<none, "x">>(x);
  return gs::einsum<"AB,AB->">(z, y) + gs::einsum<"AB,AB->">(x, y);
};
static_assert(plan_of<twice, mesh, in<"AB", P<"x", none>>, in<"AB", P<none, "x">>>.count(op::all_to_all) ==
              1);

// --- what nobody reads is not computed ---

inline constexpr auto dead = [](auto& m, auto x) {
  auto unused = gs::einsum<"AB,BC->AC">(x, m.param("w", "BC", gs::init::zeros()));
  gs::softmax(gs::relu(unused));
  return gs::relu(x);
};
static_assert(plan_of<dead, mesh, in<"AB", P<none, "x">>>.steps.size() == 1);
inline constexpr auto identity = [](auto&, auto x) { return x; };
static_assert(plan_of<identity, mesh, in<"AB", P<none, "x">>>.steps.empty());

// --- updates ---

// A parameter that every device holds, with a gradient that is cut: the state is cut too, and only the
// parameter is gathered.
inline constexpr auto sharded_state = [](auto& m, auto x, auto rate) {
  auto w = m.param("w", "AB", P<none, none>{}, gs::init::zeros());
  auto h = gs::annotate<P<none, "x">>(gs::einsum<"CA,AB->CB">(x, w));
  gs::adam{}.minimise(m, gs::sum(h * h), rate);
};
constexpr plan_view updated = plan_of<sharded_state, mesh, in<"CA", P<none, none>>, in<"">>;
static_assert(sends(updated, {op::all_gather}));
static_assert(updated.at(updated.find("w")->value).layout.used() == 0 &&
              updated.at(updated.find("adam.m.w")->value).layout.dim_of(0) == 1);
static_assert(
    updated.at(updated.find("w")->updated).layout.same_layout(updated.at(updated.find("w")->value).layout));

// Reading a parameter after its update is refused, also under another name and through another layout.
template <int Way>
inline constexpr auto late_read = [](auto& m, auto x, auto rate) {
  auto w = m.param("w", "AB", P<none, none>{}, gs::init::zeros());
  auto renamed = gs::annotate<P<none, "x">>(w), merged = gs::merge_dims<0>(w);
  gs::adam{}.minimise(m, gs::sum(gs::relu(gs::einsum<"CA,AB->CB">(x, w))), rate);
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

// --- sub-axes are axes: eight over both halves of an axis of four are two over one and four over the other, and nothing moves ---

inline constexpr auto apart = [](auto&, auto x) { return gs::annotate<P<"x0", "x1">>(gs::split_dim<0>(x, "BC")); };
constexpr plan_view halves = plan_of<apart, gs::mesh<gs::axis<"x0", 2>, gs::axis<"x1", 2>>, in<"A", P<gs::axes<"x0", "x1">>>, gs::extent<'A', 8>,
                                     gs::extent<'B', 2>, gs::extent<'C', 4>>;
static_assert(halves.collectives() == 0);

// --- what lies as it does behind a barrier, where nobody asks for more, moves nothing; nor does its gradient ---

inline constexpr auto barrier = [](auto& m, auto x) {
  auto w = m.param("w", "AB", P<"x", none>{}, gs::init::zeros());
  auto y = gs::propagation_barrier(x * w);
  return std::tuple{y, gs::gradients(gs::sum(y), std::array{x})[0]};
};
constexpr plan_view behind_barrier = plan_of<barrier, mesh2, in<"AB", P<"x", none>>>;
static_assert(behind_barrier.collectives() == 0);
static_assert(behind_barrier.at(behind_barrier.outputs[0].value).layout.used() == 1);

// --- Megatron's layer: columns, then rows; one sum forward, one back, and those of the batch ---

inline constexpr auto tensor_parallel = [](auto& m, auto x, auto rate) {
  auto w1 = m.param("w1", "MH", P<none, "y">{}, gs::init::zeros()),
       w2 = m.param("w2", "HM", P<"y", none>{}, gs::init::zeros());
  auto h = gs::relu(gs::einsum<"BM,MH->BH">(gs::softmax(x), w1));
  auto y = x + gs::einsum<"BH,HM->BM">(h, w2);
  auto loss = gs::mean(y * y);
  auto dx = gs::gradients(loss, std::array{x})[0];
  gs::adam{}.minimise(m, loss, rate);
  return std::tuple{loss, dx};
};
constexpr plan_view megatron = plan_of<tensor_parallel, mesh2, in<"BM", P<"x", none>>, in<"">>;
static_assert(megatron.count(op::all_gather) == 0 && megatron.count(op::all_to_all) == 0 &&
              megatron.count(op::slice) == 0);
constexpr int sums_over(const plan_view& p, std::string_view axis) {
  return int(std::count_if(p.steps.begin(), p.steps.end(), [&](const gs::node& s) {
    return s.kind == op::all_reduce && s.attr.integer[0] == 1 << p.mesh.find(axis) &&
           p.at(s.input(0)).rank() > 0;
  }));
}
static_assert(sums_over(megatron, "y") == 2 && sums_over(megatron, "x") == 2);

}  // namespace
