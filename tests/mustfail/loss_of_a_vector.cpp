// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gradients of a vector: the loss must be a scalar.
// expect: gshard: a loss, a rate, a condition or a count is a scalar
// expect: in_operation<.*"gradients"
// expect: actual_rank<1>
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

#if defined(MUST_FAIL)
constexpr auto reduce = [](auto y) { return y; };
#else
constexpr auto reduce = [](auto y) { return gs::mean(y); };
#endif

inline constexpr auto model = [](auto&, auto x) {
  return gs::gradients(reduce(gs::relu(x)), std::array{x})[0];
};
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, in<"B">>::plan.collectives() == 0);
