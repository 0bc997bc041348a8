// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The table of kernels by operation and element type, to which an executor binds steps.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/exec/process/cpu_level.hpp>

#include <array>
#include <cstddef>
#include <string_view>

#if GSHARD_HAS_BODIES
#include <gshard/exec/process/error.hpp>

#include <string>
#endif

namespace gshard { inline namespace v0 {

namespace detail {

struct action;
struct bound_plan;
struct collective_table;

/// The element type of a step's kernel: that of its first operand or result that holds elements, not ids.
constexpr dtype element_type(const plan_view& plan, const node& step) {
  for (int i = 0; i < step.inputs; ++i)
    if (supports(step.kind, plan.at(step.input(i)).type)) return plan.at(step.input(i)).type;
  for (int o = 0; o < step.outputs; ++o)
    if (supports(step.kind, plan.at(step.output(o)).type)) return plan.at(step.output(o)).type;
  return dtype::f32;
}

/// The element type of the kernel for a type. All types of one size use the same kernel for data movement.
constexpr dtype kernel_type(op_ref kind, dtype type) {
  if (!traits(kind).by_size) return type;
  switch (size_of(type)) {
    case 1: return dtype::boolean;
    case 2: return dtype::f16;
    case 4: return dtype::f32;
    case 8: return dtype::f64;
    default: return dtype::c128;
  }
}

using bind_function = action (*)(const node& step, const bound_plan& all, std::size_t device);

/// The binders of an operation, by element type. Null: no kernel.
struct kernel_row {
  op_ref kind;
  std::array<bind_function, std::size_t(element_types)> binders{};
};

/// An operation of a program, and the element types of its kernels.
struct used_kernels {
  op_ref kind;
  element_set types = 0;
};

}  // namespace detail

/// One function per operation and element type. It binds a step on a device to its kernel.
/// @see kernels_of, all_kernels
class kernel_table {
 public:
  using binder = detail::bind_function;

  list_view<detail::kernel_row> rows;
  /// The same kernels for the levels above `cpu_level::base`, in ascending order. Null except in gshard::compiled.
  std::array<const kernel_table*, 2> higher{};
  /// The libraries and compile options of the kernels that change bits: "Eigen, AVX, FMA".
  std::string_view options{};
  /// The collectives of the program if it is header-only.
  const detail::collective_table* collectives = nullptr;

  /// The binder of an operation for an element type, or null.
  constexpr binder find(op_ref kind, dtype type) const {
    for (const detail::kernel_row& row : rows)
      if (row.kind == kind) return row.binders[std::size_t(detail::kernel_type(kind, type))];
    return nullptr;
  }
  /// The table for the highest level up to this one.
  constexpr const kernel_table& at(cpu_level level) const {
    for (std::size_t i = std::size_t(level); i > 0; --i)
      if (higher[i - 1] != nullptr) return *higher[i - 1];
    return *this;
  }
};

#if GSHARD_HAS_BODIES

namespace detail {
/// The binder of a step of a plan. Throws if there is none.
inline kernel_table::binder binder_of(const kernel_table& kernels, const plan_view& plan, const node& step) {
  if (const kernel_table::binder found = kernels.find(step.kind, element_type(plan, step))) return found;
  throw error("executor: no kernel of this program runs a step of kind " + std::string(name(step.kind)));
}
}  // namespace detail

#endif

}}  // namespace gshard::v0
