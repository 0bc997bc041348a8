// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The table of kernels by operation and element type, to which an executor binds steps.

#include <gshard/comm/cpu_level.hpp>
#include <gshard/ir/op.hpp>
#include <gshard/pass/plan.hpp>

#include <array>
#include <cstddef>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace detail {

struct action;
struct bound_plan;

/// The element type of a step's kernel: that of its first operand or result that holds elements, not ids.
constexpr dtype element_type(const plan_view& plan, const node& step) {
  for (int i = 0; i < step.inputs; ++i)
    if (supports(step.kind, plan.at(step.input(i)).type)) return plan.at(step.input(i)).type;
  for (int o = 0; o < step.outputs; ++o)
    if (supports(step.kind, plan.at(step.output(o)).type)) return plan.at(step.output(o)).type;
  return dtype::f32;
}

/// The element type of the kernel for a type. All types of one size use the same kernel for data movement.
constexpr dtype kernel_type(op kind, dtype type) {
  if (!traits(kind).by_size) return type;
  switch (size_of(type)) {
    case 1: return dtype::boolean;
    case 2: return dtype::f16;
    case 4: return dtype::f32;
    case 8: return dtype::f64;
    default: return dtype::c128;
  }
}

}  // namespace detail

/// One function per operation and element type. It binds a step on a device to its kernel.
/// @see kernels_of, all_kernels
class kernel_table {
 public:
  using binder = detail::action (*)(const node& step, const detail::bound_plan& all, std::size_t device);
  static constexpr std::size_t size = std::size_t(element_types) * std::size_t(op::count_);
  static constexpr std::size_t index(op kind, dtype type) {
    return std::size_t(element_types) * std::size_t(kind) + std::size_t(detail::kernel_type(kind, type));
  }

  std::array<binder, size> binders{};
  /// The same kernels for the levels above `cpu_level::base`, in ascending order. Null except in gshard::compiled.
  std::array<const kernel_table*, 2> higher{};
  /// The libraries and compile options of the kernels that change bits: "Eigen, AVX, FMA".
  std::string_view options{};

  constexpr binder operator()(op kind, dtype type) const { return binders[index(kind, type)]; }
  /// The table for the highest level up to this one.
  constexpr const kernel_table& at(cpu_level level) const {
    for (std::size_t i = std::size_t(level); i > 0; --i)
      if (higher[i - 1] != nullptr) return *higher[i - 1];
    return *this;
  }
};

}}  // namespace gshard::v0
