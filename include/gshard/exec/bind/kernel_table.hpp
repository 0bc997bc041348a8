// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The table of kernels by operation and element type, to which an executor binds steps.

#include <gshard/ir/op.hpp>
#include <gshard/pass/plan.hpp>

#include <array>
#include <cstddef>

namespace gshard { inline namespace v0 {

namespace detail {

struct action;
struct bound_plan;

/// The element type of a step's kernel: the type of its first operand or result that is not an integer, else float.
constexpr dtype element_type(const plan_view& plan, const node& step) {
  for (int i = 0; i < step.inputs; ++i)
    if (plan.at(step.input(i)).type != dtype::i32) return plan.at(step.input(i)).type;
  for (int o = 0; o < step.outputs; ++o)
    if (plan.at(step.output(o)).type != dtype::i32) return plan.at(step.output(o)).type;
  return dtype::f32;
}

}  // namespace detail

/// One function per operation and element type. It binds a step on a device to its kernel.
/// @see kernels_of, all_kernels
class kernel_table {
 public:
  using binder = detail::action (*)(const node& step, const detail::bound_plan& all, std::size_t device);
  static constexpr std::size_t size = 2 * std::size_t(op::count_);
  static constexpr std::size_t index(op kind, dtype type) { return 2 * std::size_t(kind) + (type == dtype::f64 ? 1 : 0); }

  std::array<binder, size> binders{};

  constexpr binder operator()(op kind, dtype type) const { return binders[index(kind, type)]; }
};

}}  // namespace gshard::v0
