// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/exec/local_step.hpp>
#include <gshard/exec/looped_step.hpp>
#include <gshard/pass/plan.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace gshard { inline namespace v0 {

namespace detail {

/// The floating-point type of a step: that of its first operand or result that is not an integer.
constexpr dtype element_type(const plan_view& plan, const node& step) {
  for (int i = 0; i < step.inputs; ++i)
    if (plan.at(step.input(i)).type != dtype::i32) return plan.at(step.input(i)).type;
  for (int o = 0; o < step.outputs; ++o)
    if (plan.at(step.output(o)).type != dtype::i32) return plan.at(step.output(o)).type;
  return dtype::f32;
}

template <op Kind, class T>
action bind_step(const node& step, const bound_plan& all, [[maybe_unused]] std::size_t device) {
  if constexpr (Kind == op::looped_einsum)  // of all devices, as they take turns
    return [loop = std::make_shared<looped_step<T>>(step, all)](const run_context&) { (*loop)(); };
  else
    return local_step<T>(step, all, device).template bind<Kind>();
}

}  // namespace detail

/// What an executor binds the steps of a plan to, by operation and element type. A kernel that no table names is not compiled.
class kernel_table {
 public:
  using binder = decltype(&detail::bind_step<op::count_, float>);
  static constexpr std::size_t size = 2 * std::size_t(op::count_);

  /// The kernels k for which `Selection::has[k]`.
  template <class Selection>
  static constexpr kernel_table of() {
    return []<std::size_t... K>(std::index_sequence<K...>) {
      kernel_table t;
      (t.add<Selection::has[K], K>(), ...);
      return t;
    }(std::make_index_sequence<size>{});
  }
  static constexpr std::size_t index(op kind, dtype type) { return 2 * std::size_t(kind) + (type == dtype::f64 ? 1 : 0); }

  constexpr binder operator()(op kind, dtype type) const { return bind_[index(kind, type)]; }

 private:
  std::array<binder, size> bind_{};

  template <bool Wanted, std::size_t K>
  constexpr void add() {
    constexpr op kind = Wanted ? op(K / 2) : op::count_;  // the kernel of no operation says so
    if constexpr (Wanted && K % 2 == 1) bind_[K] = &detail::bind_step<kind, double>;
    else bind_[K] = &detail::bind_step<kind, float>;
  }
};

namespace detail {
template <class Program>
struct kernels_in {
  static constexpr auto has = [] {
    std::array<bool, kernel_table::size> used{};
    for (const node& step : Program::plan.steps) used[kernel_table::index(step.kind, element_type(Program::plan, step))] = true;
    return used;
  }();
};
}  // namespace detail

/// The kernels that a program uses.
template <class Program>
inline constexpr kernel_table kernels_of = kernel_table::of<detail::kernels_in<Program>>();

}}  // namespace gshard::v0
