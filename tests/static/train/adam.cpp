// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/program/program.hpp>
#include <gshard/train/accumulate.hpp>
#include <gshard/train/adafactor.hpp>
#include <gshard/train/adam.hpp>

#include "../tracing.hpp"

#include <string_view>

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

// Gradients have the dims of their parameter.
constexpr gs::diagnostic problem_with(std::string_view dims_of_gradient) {
  return problem_of([=](auto& b, auto& m) {
    gs::adam{}.update(m, m.param("w", "AB", init::zeros()), input(b, dims_of_gradient), input(b, ""));
  });
}
static_assert(problem_with("AC").what == fault::dims_differ && problem_with("AC").subject.view() == "adam");
static_assert(problem_with("AC").first == 1 && problem_with("AC").second == 1 && problem_with("BA").second == 0);
static_assert(problem_with("A").what == fault::rank_mismatch && problem_with("A").subject.view() == "gradient of adam");
static_assert(problem_with("A").first == 2 && problem_with("A").second == 1);
constexpr gs::diagnostic problem_of_adafactor(std::string_view dims_of_gradient) {
  return problem_of([=](auto& b, auto& m) {
    gs::accumulated sum{input(b, ""), {}, {}};
    sum.parameters.push_back(m.param("w", "AB", init::zeros()));
    sum.gradients.push_back(input(b, dims_of_gradient));
    gs::adafactor{}.minimize(m, sum);
  });
}
static_assert(!problem_of_adafactor("AB") && problem_of_adafactor("BA").what == fault::dims_differ);
static_assert(problem_of_adafactor("BA").subject.view() == "adafactor" && problem_of_adafactor("BA").first == 1);
static_assert(problem_of_adafactor("ABC").what == fault::rank_mismatch);

// accumulate names the input with another leading dim, and the dim of unknown extent.
constexpr gs::diagnostic accumulated(bool known, std::string_view second) {
  return problem_of([=](auto& b, auto& m) {
    if (known) b.options.known.set('N', 2);
    gs::accumulate(m, [](gs::symbol x, gs::symbol) { return gs::sum(x); }, input(b, "NB"), input(b, second));
  });
}
static_assert(accumulated(true, "MB").what == fault::dims_differ && accumulated(true, "MB").first == 1);
static_assert(accumulated(false, "NB").what == fault::unknown_count && accumulated(false, "NB").word.view() == "N");
static_assert(accumulated(false, "NB").subject.view() == "accumulate");

/// Losses and gradients of micro-batches are partial sums. They are completed once, weighted or not.
template <bool Weighted>
inline constexpr auto micro_batches = [](auto& m, auto x, auto counts) {
  const auto w = m.param("w", "M", gs::init::zeros());
  const auto a = gs::accumulate(m, {.weights = Weighted ? counts : gs::symbol()}, [&](auto part) { return gs::mean(part * w); }, x);
  m.update(w, a.gradients[0]);
  return a.loss;
};
template <bool Weighted>
using accumulating = gs::program<micro_batches<Weighted>, gs::mesh<gs::axis<"x", 4>>, gs::in<"NBM", gs::P<gs::none, "x", gs::none>>,
                                 gs::in<"N">, gs::extent<'N', 4>, gs::combine_up_to<0>>;
static_assert(accumulating<false>::plan.collectives() == 2 && accumulating<true>::plan.collectives() == 2);

}  // namespace
