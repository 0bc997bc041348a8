// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Uses of the result of a wrong call cause no further errors.
// expect: gshard: softmax\(x\) takes one tensor of a program
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"data">>;

template <class T>
constexpr gs::symbol half(const gs::parameter_scope& m, gs::symbol x, T y) {
  return gs::einsum<"AB,AB->AB">(x, m.param("w", "AB", gs::init::zeros())) + y * 0.5;
}
inline constexpr auto model = [](auto& m, auto x) {
#if defined(MUST_FAIL)
  auto y = gs::softmax(3.0);
#else
  auto y = gs::softmax(x);
#endif
  auto [best, at] = gs::top_k(x + y, 1);
  auto loop = gs::while_loop([](auto v) { return gs::sum(v) < 1; }, [&](auto v) { return v + half(m, v, y); }, half(m, x, y));
  m.loss(gs::sum(gs::layer_norm(y, gs::sum<"AB->B">(x), gs::sum<"AB->B">(y))));
  m.loss(gs::sum(half(m, y, y)));
  return std::tuple(gs::concat({x, y, loop}, 0), gs::gather(best, at), m.objective(gs::sum(gs::select(x > y, x, 0))));
};
static_assert(gs::program<model, mesh, in<"AB">>::plan.steps.size() != 1);
