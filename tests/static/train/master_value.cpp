// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/train/master_value.hpp>

#include <gshard/train/adafactor.hpp>

#include "../tracing.hpp"

#include <cstddef>
#include <cstdint>

namespace gs = gshard;
using gs::dtype, gs::fault, gs::init;
using tracing::input, tracing::problem_of;

namespace {

// Only parameters in half precision have a remainder. It is a float, like their master value.
constexpr bool trains(dtype of_parameter, dtype of_value, bool has_rest) {
  return tracing::holds([=](auto& b, auto& m) {
    const gs::symbol w = m.param("w", "AB", init::zeros(), of_parameter);
    const gs::detail::master_value master(m, w, "some.rest.");
    const std::int32_t rest = b.find_parameter(gs::tensor_name("some.rest.w"));
    master.update(gs::here(master.value()) * 2.0);
    const auto updated_type = [&](std::int32_t row) { return b.program.at(b.program.parameters[std::size_t(row)].updated).type; };
    return master.value().get().type == of_value && (has_rest ? rest >= 0 : rest < 0) && has_rest == (master.value().id != w.id) &&
           updated_type(w.get().parameter) == of_parameter && (!has_rest || updated_type(rest) == dtype::f32);
  });
}
static_assert(trains(dtype::f32, dtype::f32, false) && trains(dtype::f64, dtype::f64, false));
static_assert(trains(dtype::bf16, dtype::f32, true) && trains(dtype::f16, dtype::f32, true));

// adafactor: the rate has the element type of the gradient.
constexpr gs::diagnostic problem_with_rate(dtype of_parameter, dtype of_rate) {
  return problem_of([=](auto& b, auto& m) {
    const gs::symbol w = m.param("w", "AB", init::zeros(), of_parameter);
    gs::adafactor{}.minimize(m, gs::sum(gs::cast(w, gs::gradient_type(of_parameter))), input(b, "", of_rate));
  });
}
constexpr bool accepts(dtype of_parameter, dtype of_rate) { return !problem_with_rate(of_parameter, of_rate); }
constexpr bool refuses(dtype of_parameter, dtype of_rate) {
  const gs::diagnostic p = problem_with_rate(of_parameter, of_rate);
  return p.what == fault::wrong_type && p.subject.view() == "adafactor" && p.first == 2;
}
static_assert(accepts(dtype::f32, dtype::f32) && accepts(dtype::f64, dtype::f64) && accepts(dtype::bf16, dtype::f32));
static_assert(refuses(dtype::f32, dtype::f64) && refuses(dtype::bf16, dtype::f64) && refuses(dtype::bf16, dtype::bf16));

}  // namespace
