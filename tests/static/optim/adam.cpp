// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/optim/adam.hpp>

#include "../tracing.hpp"

namespace gs = gshard;
using gs::dtype, gs::fault, gs::init;
using tracing::input, tracing::problem_of;

namespace {

// The parameter, its gradient and the rate are operands 0, 1 and 2. Both others have the element type of the parameter's gradient.
constexpr bool refuses(int operand, dtype of_parameter, dtype of_gradient, dtype of_rate) {
  const gs::diagnostic p = problem_of([=](auto& b, auto& m) {
    gs::adam{}.update(m, m.param("w", "AB", init::zeros(), of_parameter), input(b, "AB", of_gradient), input(b, "", of_rate));
  });
  return p.what == fault::wrong_type && p.subject.view() == "adam" && p.first == operand;
}
constexpr bool accepts(dtype of_parameter, dtype of_rest) {
  return tracing::holds([=](auto& b, auto& m) {
    gs::adam{}.update(m, m.param("w", "AB", init::zeros(), of_parameter), input(b, "AB", of_rest), input(b, "", of_rest));
    return true;
  });
}
static_assert(accepts(dtype::f32, dtype::f32) && accepts(dtype::f64, dtype::f64) && accepts(dtype::bf16, dtype::f32));
static_assert(refuses(1, dtype::f32, dtype::f64, dtype::f64) && refuses(1, dtype::f64, dtype::f32, dtype::f64));
static_assert(refuses(1, dtype::bf16, dtype::bf16, dtype::f32) && refuses(1, dtype::f32, dtype::i32, dtype::f32));
static_assert(refuses(2, dtype::f32, dtype::f32, dtype::f64) && refuses(2, dtype::bf16, dtype::f32, dtype::bf16));

}  // namespace
