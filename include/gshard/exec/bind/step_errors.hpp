// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Adds the failed step to errors of kernels: its operands, their dims and its source line.

#include <gshard/core/plan/plan.hpp>
#include <gshard/exec/bind/bound_plan.hpp>
#include <gshard/exec/bind/step_text.hpp>
#include <gshard/exec/process/error.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

namespace gshard { inline namespace v0 { namespace detail {

/// The value before its reshards and aliases.
inline std::int32_t before_reshards(const plan_view& plan, std::int32_t v) {
  for (;;) {
    const value& x = plan.at(v);
    if (x.parameter >= 0 || x.producer < 0) return v;
    const node& maker = plan.steps[std::size_t(x.producer)];
    int o = 0;
    while (o < maker.outputs && maker.output(o) != v) ++o;
    if (!(traits(maker.kind).reshards || traits(maker.kind).alias) || o >= maker.inputs) return v;
    v = maker.input(o);
  }
}

/// `parameter "w" [V=11,M=6]`: the name of a parameter or the number of an input, then the extents of all dims, with their letters.
inline std::string operand_text(const bound_plan& bound, std::int32_t id) {
  const plan_view& plan = bound.plan;
  std::string s;
  const std::int32_t root = before_reshards(plan, id);
  if (const std::int32_t row = plan.at(root).parameter; row >= 0)
    s = "parameter \"" + std::string(plan.parameters[std::size_t(row)].name.view()) + "\" ";
  for (std::size_t i = 0; i < plan.inputs.size(); ++i)
    if (plan.inputs[i].value == root) s = "input " + std::to_string(i) + " ";
  s += '[';
  const dim_list& dims = plan.at(id).dims;
  for (int d = 0; d < dims.size(); ++d) {
    s += d ? "," : "";
    if (const char letter = plan.dims[std::size_t(dims[d])].letter) s.append(1, letter).append("=");
    s += std::to_string(bound.sizes.dim(dims[d]));
  }
  return s + "]";
}

/// Throws `what`, followed by the step, its operands and its source line:
/// `..., in gather(parameter "w" [V=11,M=6], input 0 [B=4]) at model.cpp:12`.
[[noreturn]] inline void throw_in_step(const bound_plan& bound, const node& step, const std::string& what) {
  std::string where = ", in " + std::string(name_of(step)) + "(";
  for (int i = 0; i < step.inputs; ++i) where.append(i ? ", " : "").append(operand_text(bound, step.input(i)));
  throw error(what + where + ")" + place_text(step.place));
}

/// Calls f(), which computes or binds a step. Its error names the step. @see throw_in_step
template <class F>
void with_step(const bound_plan& bound, const node& step, const F& f) {
  try {
    f();
  } catch (const not_finite_error&) {
    throw;
  } catch (const std::exception& e) {
    throw_in_step(bound, step, e.what());
  }
}

}}}  // namespace gshard::v0::detail
