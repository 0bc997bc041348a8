// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Wrong calls of verbs on tensors outside of programs, and of programs: one sentence each, and nothing else.
// expect: gshard: reshard<P<"data", none>>\(t\) takes a partition spec
// expect: gshard: reshard<.*
// expect: gshard: to_global\(t\) takes one gshard::tensor
// expect: gshard: all_to_all<0, 1>\(t\) takes two dims
// expect: gshard: outside of programs, softmax\(x\) takes one gshard::tensor
// expect: gshard: outside of programs, relu\(x\) takes one gshard::tensor
// expect: gshard: from_global<float, P<"data", none>>\(cluster, .extents., whole\) takes
// expect: gshard: from_global<.*
// expect: gshard: einsum<"GSM,ME->GSE">\(x, w, ...\) takes
// expect: gshard: einsum<.*
// expect: gshard: a . b on tensors outside of programs takes two tensors, or a tensor and a number
// expect: gshard: a \* b on tensors outside of programs takes two tensors, or a tensor and a number
// expect: gshard: less\(a, b\) takes
// expect: gshard: map<f>\(x, ...\) and map\(f, x, ...\) take
// expect: gshard: broadcast<"Q,QK->QK">\(x, like, ...\) takes
// expect: gshard: to_global\(t\) takes one gshard::tensor, to_global<float>\(store, name\) a parameter store
// expect: gshard: a - b on tensors outside of programs takes
// expect: gshard: tensors outside of programs are compared by equal
// expect: gshard: tensors outside of programs are compared by equal
// expect: gshard: an operand has another element type
// expect: gshard: outside of programs, cumsum<1>\(x\) takes a dim as template argument, and one gshard::tensor
// expect: gshard: cumsum\(x, dim = -1, exclusive = false, reverse = false\) takes a tensor of a program
// expect: gshard: outside of programs, gather<1>\(table, ids\) takes a dim as template argument
// expect: gshard: outside of programs, slice<1, 0, 8>\(x\) takes a dim, start and stop as template arguments
// expect: gshard: outside of programs, concat<1>\(a, b, ...\) takes a dim as template argument
// expect: gshard: evaluate<"AB", "BC">\(f, x, y\) takes a function without captures
// expect: gshard: evaluate<"AB", "BC">\(f, x, y\) takes the letters
// expect: gshard: outside of programs, dynamic_slice<1, 8>\(x, start\) takes a dim and a size as template arguments, one gshard::tensor and
// expect: gshard: outside of programs, dynamic_slice<1, 8>.* an integer
// expect: gshard: outside of programs, dynamic_update_slice<1>\(x, update, start\) takes a dim as template argument, two gshard::tensors
// expect: gshard: outside of programs, merge_dims<1>\(x\) takes a dim as template argument, and one gshard::tensor
// expect: gshard: outside of programs, split_dim<1>\(x, 4, 8\) takes a dim as template argument, one gshard::tensor and two extents
// expect: gshard: outside of programs, expand_dims<1>\(x\) takes a dim as template argument, and one gshard::tensor
// expect: gshard: outside of programs, squeeze<1>\(x\) takes a dim as template argument, and one gshard::tensor
// expect: gshard: outside of programs, one_hot\(ids, 8\) takes one gshard::tensor and the number of classes
// expect: gshard: outside of programs, uniform<float, P<"data", none>>\(cluster, \{extents\}, seed\) takes an element type and a spec
// expect: gshard: outside of programs, uniform<float, P<"data", none>>.* extents and a seed
// expect: gshard: outside of programs, normal<float, P<"data", none>>\(cluster, \{extents\}, seed\) takes
// expect: gshard: outside of programs, iota<P<"data", none>, 1>\(cluster, \{extents\}\) takes a spec and maybe a dim, a cluster and extents
// expect: gshard: an operation names a dim that its operand does not have
// expect: gshard: a program is called with another number of inputs
// expect: gshard: a program is called .*
// expect: gshard: an input of a program is a tensor, a contiguous range
// expect: gshard: executable<program>\(cluster, .* takes a cluster, extents
// expect: gshard: simulate<mesh>\(4\) and simulate<mesh>\(\{2, 2\}\) take a mesh, the number of devices or the extents of its axes
// expect: gshard: simulate<mesh>.* and maybe a node_map
// expect: gshard: simulate<mesh>\(4\) .*
// expect: gshard: outside of programs, layer_norm\(x, gamma, beta\) takes three gshard::tensors: for another epsilon, use evaluate
// expect: gshard: outside of programs, softmax\(x\) takes one gshard::tensor
// expect: gshard: outside of programs, argmax<"AB->A">\(x\) takes an equation as template argument
// expect: gshard: outside of programs, logical_not\(mask\) takes one gshard::tensor of bool: cast<bool>\(x > y\)
// expect: gshard: outside of programs, logical_and\(a, b\) takes two gshard::tensors of bool
// expect: gshard: masks outside of programs are negated by logical_not
// expect: gshard: outside of programs, concat<1>\(a, b, ...\) takes a dim as template argument, and at most 7 gshard::tensors
// expect: gshard: outside of programs, real\(z\) takes one gshard::tensor of complex numbers
// expect: gshard: pad\(x, dim, low, high, interior = 0, fill = 0\) takes a tensor of a program, integers and a number
#include <gshard/gshard.hpp>

#include <cstdint>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;
using tensor = gs::tensor<float, P<"x", none>>;

inline constexpr auto model = [](auto&, auto x) { return x; };
using program = gs::program<model, gs::mesh<gs::axis<"x">>, gs::in<"AB", P<"x", none>>>;

void call(const gs::cluster<gs::mesh<gs::axis<"x">>>& on, const tensor& t, const tensor& u, const gs::tensor<double, P<"x", none>>& d,
          gs::executable<program>& run) {
#if defined(MUST_FAIL)
  gs::reshard(t);
  gs::reshard<P<none, none>>(3.0);
  gs::to_global(2);
  gs::all_to_all<0>(3);
  gs::softmax(t, u);
  gs::relu(t, u);
  gs::from_global<float>(on, {1, 2}, std::vector<float>());
  gs::from_global<float>(3, 4);
  gs::einsum(t, u);
  gs::einsum<"AB,BC->AC">(t, 3.0);
  t + "3";
  t * run;
  gs::less(t);
  gs::map([factor = 2.0f](auto v) { return factor * v; }, t);
  gs::broadcast<"AB,AB->AB">(t, 3);
  gs::to_global<float>(run);
  t - on;
  t == t;
  t != u;
  gs::map<[](auto v, auto w) { return v * w; }>(t, d);
  gs::cumsum(t, 1);
  gs::cumsum<1>(3);
  gs::gather(t, t, 1);
  gs::slice(t, 0, 1, 2);
  gs::concat<0>(t, 3);
  gs::evaluate([&](auto v) { return v; }, t);
  gs::evaluate<"AB", "AB">([](auto v) { return v; }, t);
  gs::sort<2>(t);
  run();
  run(t, u);
  run(3);
  gs::executable<program> other(on);
  gs::simulate<gs::mesh<gs::axis<"x">, gs::axis<"y">>>(2, 2);
  gs::simulate<gs::mesh<gs::axis<"x">>>(2.0);
  gs::simulate<program>(2);
  gs::dynamic_slice(t, 0, 1, 2);
  gs::dynamic_slice<0, 2>(t, 1.5);
  gs::dynamic_update_slice<0>(t, 1, 2);
  gs::merge_dims(t, 0);
  gs::split_dim<0>(t, "AB");
  gs::expand_dims(t, 0);
  gs::squeeze(t, 0);
  gs::one_hot<double>(t, 1.5);
  gs::uniform<float>(on, {1, 2}, 3);
  gs::uniform<float, P<"x", none>>(on, {1, 2});
  gs::normal(on, std::vector<std::int64_t>{1, 2}, 3);
  gs::iota<P<"x">>(on, 3);
  gs::layer_norm(t, u, u, 1e-3);
  gs::softmax<1>(t);
  gs::argmax(t, 1);
  gs::logical_not(t > 0.5f);
  gs::logical_and(t, u);
  !t;
  gs::concat<0>(t, t, t, t, t, t, t, t);
  gs::real(t);
  gs::pad<0, 3000000000, 1>(t);
#else
  gs::to_global(gs::reshard<P<none, none>>(t));
  gs::all_to_all<0, 1>(t);
  gs::softmax(t);
  gs::from_global<float, P<"x", none>>(on, {1, 2}, std::vector<float>(2));
  gs::einsum<"AB,CB->AC">(t, u);
  t + u;
  gs::less(t, 3);
  gs::map<[](auto v) { return v; }>(t);
  gs::map([](auto v) { return v > 0 ? v : 0; }, t);
  gs::broadcast<"AB,AB->AB">(t, d);
  t + 3;
  gs::cumsum<1>(t);
  gs::top_k<1, 1, false>(t);
  gs::dynamic_slice<0, 2>(t, 1);
  gs::dynamic_update_slice<0>(t, u, 1);
  gs::merge_dims<0>(t);
  gs::split_dim<0>(t, 2, 3);
  gs::squeeze<0>(gs::expand_dims<0>(t));
  gs::slice<0, 0, 3000000000>(t);
  gs::logical_not(gs::logical_or(gs::cast<bool>(t > 0.5f), gs::cast<bool>(u)));
  gs::one_hot<double>(gs::iota<P<"x">>(on, {3}), 2);
  gs::uniform<float, P<"x", none>>(on, {1, 2}, 3);
  gs::normal<float, P<"x">>(on, std::vector<std::int64_t>{3}, 3);
  gs::concat<0>(t, u, t);
  gs::evaluate<"AB">([](auto v) { return v; }, t);
  run(t);
  gs::executable<program> other(on, {{'A', 1}, {'B', 2}});
  gs::simulate<gs::mesh<gs::axis<"x">, gs::axis<"y">>>({2, 2}, {{0, 0, 1, 1}});
  gs::simulate<gs::mesh<gs::axis<"x">>>(2);
#endif
}
