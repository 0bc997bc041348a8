// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Wrong calls of verbs of sums, reductions and elements: one sentence each, and nothing else.
// expect: gshard: einsum<"GSM,ME->GSE">\(x, w, \.\.\.\) takes an equation and one to 16 tensors of a program
// expect: gshard: einsum<"GSM,ME->GSE">\(x, w, \.\.\.\) takes an equation and one to 16 tensors of a program
// expect: gshard: einsum<"GSM,ME->GSE">\(x, w, \.\.\.\) takes an equation and one to 16 tensors of a program
// expect: gshard: sum\(x\) and sum<"AB->A">\(x\) take one tensor of a program
// expect: gshard: mean\(x\) and mean<"AB->A">\(x\) take one tensor of a program
// expect: gshard: reduce_max\(x\) and reduce_max<"AB->A">\(x\) take one tensor of a program
// expect: gshard: reduce_max\(x\) and reduce_max<"AB->A">\(x\) take one tensor of a program
// expect: gshard: reduce_min\(x\) and reduce_min<"AB->A">\(x\) take one tensor of a program
// expect: gshard: reduce_prod\(x\) and reduce_prod<"AB->A">\(x\) take one tensor of a program
// expect: gshard: reduce_sum\(x\) and reduce_sum<"AB->A">\(x\) take one tensor of a program
// expect: gshard: reduce<"AB->A">\(x, reduction::max\) takes one tensor of a program and a reduction
// expect: gshard: argmax<"AB->A">\(x\) takes an equation and one tensor of a program
// expect: gshard: argmin<"AB->A">\(x\) takes an equation and one tensor of a program
// expect: gshard: logsumexp<"AB->A">\(x\) takes an equation and one tensor of a program
// expect: gshard: conv<"BIXY,xyIO->BOXY">\(x, w, \{\{\.stride = 2\}\}\) takes an equation, two tensors of a program and windo
// expect: gshard: conv<"BIXY,xyIO->BOXY">\(x, w, \{\{\.stride = 2\}\}\) takes an equation, two tensors of a program and windo
// expect: gshard: sum_pool\(x, \{\{dim, taps\}, \.\.\.\}\) takes a tensor of a program and a list of windows
// expect: gshard: mean_pool\(x, \{\{dim, taps\}, \.\.\.\}\) takes a tensor of a program and a list of windows
// expect: gshard: max_pool\(x, \{\{dim, taps\}, \.\.\.\}\) takes a tensor of a program and a list of windows
// expect: gshard: min_pool\(x, \{\{dim, taps\}, \.\.\.\}\) takes a tensor of a program and a list of windows
// expect: gshard: full_precision\(f, x, \.\.\.\) takes a function and the tensors of a program that it is called with
// expect: gshard: map<f>\(x, \.\.\.\) and map\(f, x, \.\.\.\) take a function without captures and one to five tensors
// expect: gshard: map<f>\(x, \.\.\.\) and map\(f, x, \.\.\.\) take a function without captures and one to five tensors
// expect: gshard: relu\(x\) takes one tensor of a program
// expect: gshard: stop_gradient\(x\) takes one tensor of a program
// expect: gshard: scale_by<"D">\(x, power\) takes the letters of dims, a tensor of a program and a number
// expect: gshard: cast<double>\(x\) takes an element type and one tensor of a program
// expect: gshard: cast<double>\(x\) takes an element type and one tensor of a program
// expect: gshard: on_wire<gs::bfloat16>\(x\) takes one tensor of a program
// expect: gshard: less\(a, b\) takes two tensors of a program, or a tensor and a number
// expect: gshard: less\(a, b\) takes two tensors of a program, or a tensor and a number
// expect: gshard: equal\(a, b\) takes two tensors of a program, or a tensor and a number
// expect: gshard: select\(condition, a, b\) takes three tensors of a program; a and b may be numbers
// expect: gshard: dropout\(x, rate\) takes a tensor of a program and a number
// expect: gshard: a \+ b takes two tensors of a program, or a tensor and a number
// expect: gshard: a - b takes two tensors of a program, or a tensor and a number
// expect: gshard: a \* b takes two tensors of a program, or a tensor and a number
// expect: gshard: a / b takes two tensors of a program, or a tensor and a number
// expect: gshard: a < b takes two tensors of a program, or a tensor and a number
// expect: gshard: a > b takes two tensors of a program, or a tensor and a number
// expect: gshard: a <= b takes two tensors of a program, or a tensor and a number
// expect: gshard: a >= b takes two tensors of a program, or a tensor and a number
// expect: gshard: tensors of a program are compared by equal\(a, b\)
// expect: gshard: tensors of a program are compared by 1 - equal\(a, b\)
// expect: gshard: broadcast<"Q,QK->QK">\(x, like, \.\.\.\) takes an equation, a tensor and tensors that give extents
// expect: gshard: broadcast<"Q,QK->QK">\(x, like, \.\.\.\) takes an equation, a tensor and tensors that give extents
// expect: gshard: tensors of a program that are 0 or 1 are combined by a \* b, and negated by 1 - a
// expect: gshard: tensors of a program that are 0 or 1 are combined by a \* b, and negated by 1 - a
// expect: gshard: tensors of a program that are 0 or 1 are combined by a \* b, and negated by 1 - a
// expect: gshard: a tensor of a program is not changed: write a = a \+ b
// expect: gshard: a tensor of a program is not changed: write a = a - b
// expect: gshard: a tensor of a program is not changed: write a = a \* b
// expect: gshard: a tensor of a program is not changed: write a = a / b
// expect: gshard: exp\(v\) takes a number, in the function of map: map<\[\]\(auto v\) \{ return gshard::exp\(v\); \}>\(x\)
// expect: gshard: log\(v\) takes a number, in the function of map: map<\[\]\(auto v\) \{ return gshard::log\(v\); \}>\(x\)
// expect: gshard: tanh\(v\) takes a number, in the function of map: map<\[\]\(auto v\) \{ return gshard::tanh\(v\); \}>\(x\)
// expect: gshard: sqrt\(v\) takes a number, in the function of map: map<\[\]\(auto v\) \{ return gshard::sqrt\(v\); \}>\(x\)
// expect: gshard: abs\(v\) takes a number, in the function of map: map<\[\]\(auto v\) \{ return gshard::abs\(v\); \}>\(x\)
// expect: gshard: max\(v, w\) takes two numbers, in the function of map: map<\[\]\(auto v, auto w\) \{ return gshard::max\(v, 
// expect: gshard: min\(v, w\) takes two numbers, in the function of map: map<\[\]\(auto v, auto w\) \{ return gshard::min\(v, 
// expect: gshard: real\(z\) takes one tensor of a program
// expect: gshard: imag\(z\) takes one tensor of a program
// expect: gshard: conj\(z\) takes one tensor of a program
// expect: gshard: complex\(x, y\) takes two tensors of a program
// expect: gshard: logical_and\(a, b\) takes two tensors of a program
// expect: gshard: logical_or\(a, b\) takes two tensors of a program
// expect: gshard: logical_not\(a\) takes one tensor of a program
#include <gshard/plan.hpp>

#include <vector>

namespace gs = gshard;
using namespace gshard;
using vector = std::vector<float>;

inline constexpr auto model = [](auto& m, auto a, auto c, auto image, auto filter) {
  const auto use = [](const auto&...) {};
#if defined(MUST_FAIL)
  use(einsum(a, c));
  use(einsum<"AB,CB->AC">(a, 2));
  use(einsum("AB->A", a));
  use(sum<"AB->A">(a, c));
  use(mean(vector()));
  use(reduce_max(a, c));
  use(reduce_max("AB->A", 2));
  use(reduce_min<"AB->A">());
  use(reduce_prod<"AB->A">(vector()));
  use(reduce_sum(2));
  use(reduce<"AB->A">(a));
  use(argmax<"AB->A">(a, 1));
  use(argmin(a));
  use(logsumexp<"AB->A">(1.0));
  use(conv<"BXI,xIO->BXO">(image));
  use(conv<"BXI,xIO->BXO">(image, filter, 2));
  use(sum_pool(image));
  use(mean_pool(image, 2, 2));
  use(max_pool(image, 1));
  use(min_pool());
  use(full_precision(a, c));
  use(map<[](auto v) { return v; }>(vector()));
  use(map(a, [](auto v) { return v; }));
  use(relu(2));
  use(stop_gradient());
  use(scale_by(a, -0.5));
  use(cast(a));
  use(cast<double>(a, 1));
  use(on_wire<bfloat16>(a, 1));
  use(less(a));
  use(less(a, vector()));
  use(equal(a, c, c));
  use(select(a, c));
  use(dropout(0.1, a));
  use(a + vector());
  use("text" - a);
  use(vector() * a);
  use(a / m);
  use(a < m);
  use(a > vector());
  use(m <= a);
  use(a >= "text");
  use(a == c);
  use(a != 0);
  use(broadcast<"A,AB->AB">(a, 3));
  use(broadcast(a));
  use((a < c) && (c < a));
  use((a < c) || (c < a));
  use(!(a < c));
  auto changed = a;
  changed += c;
  changed -= c;
  changed *= 2;
  changed /= 2;
  use(exp(a));
  use(log(a));
  use(tanh(a));
  use(sqrt(a));
  use(abs(a));
  use(max(a, c));
  use(min(a, c));
  use(real(a, 2));
  use(imag(a, c));
  use(conj(a, 1));
  use(complex(a, 2));
  use(logical_and(a, true));
  use(logical_or(a));
  use(logical_not(a, c));
#else
  use(einsum<"AB,AB->A">(a, c));
  use(einsum("AB,AB->A", {a, c}));
  use(sum<"AB->A">(a));
  use(mean(a));
  use(reduce_max<"AB->A">(a));
  use(reduce_max("AB->A", a));
  use(reduce_sum<"AB->A">(a));
  use(reduce<"AB->A">(a, reduction::max));
  use(reduce_min<"AB->A">(a));
  use(reduce_prod<"AB->A">(a));
  use(argmax<"AB->A">(a));
  use(argmin<"AB->A">(a));
  use(logsumexp<"AB->A">(a));
  use(conv<"BXI,xIO->BXO">(image, filter, {{.low = 1}}));
  use(sum_pool(image, {{1, 2}}));
  use(mean_pool(image, {{1, 2}}));
  use(max_pool(image, {{1, 2}}));
  use(min_pool(image, {{1, 2}}));
  use(full_precision([](auto v) { return v; }, a));
  use(map<[](auto v, auto w) { return v * w; }>(a, c));
  use(relu(a));
  use(stop_gradient(a));
  use(scale_by<"A">(a, -0.5));
  use(cast<double>(a));
  use(on_wire<bfloat16>(a));
  use(less(a, 3));
  use(equal(2.5, a));
  use(select(a > c, a, 0));
  use(dropout(a, 0.1));
  use(a + 1);
  use(1 - a);
  use(a * c);
  use(a / 2);
  use(a < c);
  use(2 > a);
  use(a <= 1);
  use(a >= c);
  use(equal(a, c));
  use(1 - equal(a, c));
  use(map<[](auto v) { return gs::exp(v); }>(a));
  use(map<[](auto v) { return gs::log(v); }>(a));
  use(map<[](auto v) { return gs::tanh(v); }>(a));
  use(map<[](auto v) { return gs::sqrt(v); }>(a));
  use(map<[](auto v) { return gs::abs(v); }>(a));
  use(map<[](auto v) { return gs::max(v, 0); }>(a));
  use(map<[](auto v) { return gs::min(v, 0); }>(a));
  use(real(a));
  use(imag(a));
  use(conj(a));
  use(complex(a, c));
  use(logical_and(cast<bool>(a), cast<bool>(c)));
  use(logical_or(cast<bool>(a), cast<bool>(c)));
  use(logical_not(cast<bool>(a)));
#endif
  return a;
};
static_assert(program<model, mesh<axis<"d">>, in<"AB">, in<"AB">, in<"BXI">, in<"xIO">>::plan.count(op::all_to_all) == 0);
