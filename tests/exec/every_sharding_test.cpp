// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every operation, with any layout of its operands and on any mesh, equals the operation on one device.
#include "run_graph.hpp"

#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/iota.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/ops/reduce/argmax.hpp>
#include <gshard/ops/reduce/logsumexp.hpp>
#include <gshard/ops/reduce/reduce.hpp>

namespace gs = gshard;
using gs::einsum, gs::symbol;
using run_graph::every_sharding, run_graph::trace, run_graph::lay_out;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using scope = gs::parameter_scope;

namespace {

const std::vector<gs::dims> sizes{{{'A', 6}, {'B', 12}, {'C', 6}, {'D', 6}},
                                  {{'A', 5}, {'B', 7}, {'C', 3}, {'D', 4}},
                                  {{'A', 2}, {'B', 1}, {'C', 4}, {'D', 1}}};

}  // namespace

TEST_CASE("einsum of two operands: contracted, free and batch indices") {
  every_sharding(
      trace({{"AB"}, {"BC"}}, [](const scope&, given x) { return symbols{einsum<"AB,BC->AC">(x[0], x[1])}; }),
      {sizes});
  every_sharding(trace({{"ABC"}, {"ACD"}},
                       [](const scope&, given x) { return symbols{einsum<"abc,acd->bda">(x[0], x[1])}; }),
                 {sizes});
  every_sharding(trace({{"ABC"}, {"BC"}},
                       [](const scope&, given x) { return symbols{einsum<"abc,bc->a">(x[0], x[1])}; }),
                 {sizes});
  every_sharding(trace({{"ABD"}, {"DBC"}},
                       [](const scope&, given x) { return symbols{einsum<"abd,dbc->cab">(x[0], x[1])}; }),
                 {sizes});
}

TEST_CASE("einsum of two operands: outer products, sums over indices of one operand, scalars") {
  every_sharding(trace({{"AB"}, {"CD"}},
                       [](const scope&, given x) { return symbols{einsum<"ab,cd->acbd">(x[0], x[1])}; }),
                 {sizes});
  every_sharding(
      trace({{"AB"}, {"CD"}}, [](const scope&, given x) { return symbols{einsum<"ab,cd->cb">(x[0], x[1])}; }),
      {sizes});
  every_sharding(
      trace({{"AB"}, {"AB"}}, [](const scope&, given x) { return symbols{einsum<"ab,ab->">(x[0], x[1])}; }),
      {sizes});
  every_sharding(
      trace({{"AB"}, {""}}, [](const scope&, given x) { return symbols{einsum<"ab,->ba">(x[0], x[1])}; }),
      {sizes});
}

TEST_CASE("column-major inputs: of einsums, of other operations, of both") {
  const auto reversed = [](const symbol& x) { return gs::detail::emit_reversed(*x.owner, x, "x"); };
  every_sharding(trace({{"BA"}, {"BC"}},
                       [&](const scope&, given x) { return symbols{einsum<"AB,BC->AC">(reversed(x[0]), x[1])}; }),
                 {sizes});
  every_sharding(trace({{"CBA"}, {"CB"}},
                       [&](const scope&, given x) { return symbols{einsum<"abc,bc->cab">(reversed(x[0]), reversed(x[1]))}; }),
                 {sizes});
  every_sharding(trace({{"BA"}, {"BC"}},
                       [&](const scope&, given x) {
                         const symbol a = reversed(x[0]);
                         return symbols{einsum<"AB,BC->CA">(gs::relu(a), x[1]), einsum<"AB->B">(a), a};
                       }),
                 {.dims = sizes, .most = 300});
}

TEST_CASE("einsum of three and four operands") {
  every_sharding(trace({{"AB"}, {"BC"}, {"CD"}},
                       [](const scope&, given x) { return symbols{einsum<"ab,bc,cd->da">(x[0], x[1], x[2])}; }),
                 {.dims = sizes, .most = 300});
  every_sharding(trace({{"A"}, {"AB"}, {"B"}, {"CB"}},
                       [](const scope&, given x) { return symbols{einsum<"a,ab,b,cb->c">(x[0], x[1], x[2], x[3])}; }),
                 {.dims = sizes, .most = 300});
}

TEST_CASE("einsum of one tensor with itself, transposed") {
  every_sharding(
      trace({{"AB"}}, [](const scope&, given x) { return symbols{einsum<"ab,cb->ac">(x[0], x[0])}; }),
      {sizes});
  every_sharding(
      trace({{"AA"}}, [](const scope&, given x) { return symbols{einsum<"ab,bc->ac">(x[0], x[0])}; }),
      {sizes});
}

TEST_CASE("einsum of one operand: sums and transposition, of complete tensors and of partial sums") {
  for (const bool pending : {false, true}) {
    const run_graph::sweep how{.dims = sizes, .pending_sources = pending};
    every_sharding(trace({{"ABC"}}, [](const scope&, given x) { return symbols{einsum<"abc->cab">(x[0])}; }),
                   how);
    every_sharding(trace({{"ABC"}}, [](const scope&, given x) { return symbols{einsum<"abc->ca">(x[0])}; }),
                   how);
    every_sharding(trace({{"ABC"}},
                         [](const scope&, given x) {
                           return symbols{gs::sum<"abc->b">(x[0]), gs::sum(x[0])};
                         }),
                   how);
  }
}

TEST_CASE("einsum: diagonals") {
  every_sharding(trace({{"AAB"}}, [](const scope&, given x) { return symbols{einsum<"aab->ab">(x[0])}; }),
                 {sizes});
  every_sharding(trace({{"AA"}}, [](const scope&, given x) { return symbols{einsum<"aa->">(x[0])}; }),
                 {sizes});
}

TEST_CASE("products of partial sums are products of their sums") {
  every_sharding(
      trace({{"AB"}, {"BC"}}, [](const scope&, given x) { return symbols{einsum<"ab,bc->ac">(x[0], x[1])}; }),
      {.dims = sizes, .pending_sources = true});
}

TEST_CASE("map: operands broadcast along leading, middle and last dims") {
  constexpr auto f = [](auto a, auto b) { return a * b - a; };
  every_sharding(
      trace({{"ABC"}, {"AC"}}, [&](const scope&, given x) { return symbols{gs::map<f>(x[0], x[1])}; }),
      {sizes});
  every_sharding(
      trace({{"AB"}, {"ABC"}}, [&](const scope&, given x) { return symbols{gs::map<f>(x[0], x[1])}; }),
      {sizes});
  every_sharding(
      trace({{"B"}, {"ABC"}}, [&](const scope&, given x) { return symbols{gs::map<f>(x[0], x[1])}; }),
      {sizes});
  every_sharding(
      trace({{""}, {"AB"}}, [&](const scope&, given x) { return symbols{gs::map<f>(x[0], x[1])}; }), {sizes});
  every_sharding(trace({{"AB"}}, [&](const scope&, given x) { return symbols{gs::relu(x[0])}; }),
                 {.dims = sizes, .pending_sources = true});
}

TEST_CASE("sums, differences and multiples of complete tensors and of partial sums") {
  for (const bool pending : {false, true}) {
    const run_graph::sweep how{.dims = sizes, .pending_sources = pending};
    every_sharding(trace({{"AB"}, {"AB"}}, [](const scope&, given x) { return symbols{x[0] + x[1]}; }), how);
    every_sharding(trace({{"AB"}, {"B"}}, [](const scope&, given x) { return symbols{x[0] - x[1]}; }), how);
    every_sharding(trace({{"AB"}},
                         [](const scope&, given x) {
                           return symbols{0.5 * x[0], gs::scale_by<"B">(x[0], 2)};
                         }),
                   how);
  }
}

TEST_CASE("outputs may keep their sums pending") {
  every_sharding(
      trace({{"AB"}, {"BC"}}, [](const scope&, given x) { return symbols{einsum<"ab,bc->ac">(x[0], x[1])}; }),
      {.dims = sizes, .options = {.known = {}, .partial_outputs = true}});
  every_sharding(
      trace({{"AB"}, {"AB"}},
            [](const scope&, given x) {
              return symbols{x[0] + x[1], 2 * x[0]};
            }),
      {.dims = sizes, .pending_sources = true, .options = {.known = {}, .partial_outputs = true}});
}

TEST_CASE("means divide by whole extents") {
  every_sharding(trace({{"ABC"}},
                       [](const scope&, given x) {
                         return symbols{gs::mean<"ABC->B">(x[0]), gs::mean(x[0])};
                       }),
                 {.dims = sizes, .tolerance = 1e-14, .pending_sources = true});
}

TEST_CASE("largest, smallest, product, and the index of the largest") {
  every_sharding(trace({{"ABC"}},
                       [](const scope&, given x) {
                         return symbols{gs::reduce_max<"abc->ca">(x[0]), gs::reduce_max<"abc->">(x[0]),
                                        lay_out(gs::reduce_min<"abc->bc">(x[0])), lay_out(gs::argmax<"abc->cb">(x[0]))};
                       }),
                 {sizes});
  every_sharding(trace({{"AB"}},
                       [](const scope&, given x) {
                         return symbols{gs::argmin<"ab->a">(x[0]), lay_out(gs::reduce_prod<"ab->b">(x[0])),
                                        gs::logsumexp<"ab->a">(x[0])};
                       }),
                 {.dims = sizes, .tolerance = 1e-14, .pending_sources = true});
}

TEST_CASE("cast") {
  every_sharding(
      trace({{"AB"}, {"BC", gs::dtype::i32, 'A'}},
            [](const scope&, given x) {
              return symbols{gs::cast<float>(x[0]), gs::cast<double>(x[1]), gs::cast<std::int32_t>(x[0])};
            }),
      {.dims = sizes, .pending_sources = true});
}

TEST_CASE("reshape: dims merge and split") {
  for (const bool pending : {false, true}) {
    const run_graph::sweep how{.dims = sizes, .pending_sources = pending};
    every_sharding(
        trace({{"ABC"}}, [](const scope&, given x) { return symbols{lay_out(gs::merge_dims<0>(x[0]))}; }),
        how);
    every_sharding(trace({{"ABC"}},
                         [](const scope&, given x) {
                           return symbols{lay_out(gs::split_dim<1>(lay_out(gs::merge_dims<1>(x[0]))))};
                         }),
                   how);
  }
}

TEST_CASE("reshape: any dim is taken apart, dims of extent 1 come and go") {
  const std::vector<gs::dims> parts{{{'A', 6}, {'B', 12}, {'P', 2}, {'Q', 3}, {'U', 1}},
                                    {{'A', 5}, {'B', 3}, {'P', 5}, {'Q', 1}, {'U', 1}}};
  every_sharding(
      trace({{"AB"}, {"UB"}},
            [](const scope&, given x) {
              return symbols{lay_out(gs::split_dim<0>(x[0], "PQ")), lay_out(gs::expand_dims<1>(x[0])), lay_out(gs::squeeze<0>(x[1]))};
            }),
      {.dims = parts, .pending_sources = true});
}

TEST_CASE("iota") {
  every_sharding(trace({{"B"}},
                       [](const scope& m, given x) {
                         const symbol rows = lay_out(gs::cast<double>(gs::iota<"AB">(m))),
                                      columns = lay_out(gs::iota<"AB">(m, 1));
                         return symbols{rows * x[0], columns};
                       }),
                 {sizes});
}

TEST_CASE("dims without elements") {
  const std::vector<gs::dims> empty{{{'A', 0}, {'B', 3}, {'C', 2}}, {{'A', 3}, {'B', 0}, {'C', 2}}};
  every_sharding(trace({{"AB"}, {"BC"}},
                       [](const scope&, given x) {
                         return symbols{einsum<"AB,BC->AC">(x[0], x[1]), lay_out(x[0]), gs::sum(x[1])};
                       }),
                 {empty});
}
