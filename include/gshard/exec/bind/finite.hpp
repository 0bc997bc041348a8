// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Binds the checks for NaN and infinities to kernels, including those of optimizers.

#include <gshard/comm/step_text.hpp>
#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/finite_checks.hpp>
#include <gshard/exec/step_errors.hpp>
#include <gshard/kernel/elementwise/finite.hpp>
#include <gshard/ops/check/check_finite.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace gshard { inline namespace v0 { namespace detail {

/// A shard that is checked, and its name for errors.
template <class T>
struct checked_shard {
  std::string name;
  const T* data = nullptr;
  std::int64_t count = 0;
  kernel::placement at{};
  int device = 0;

  /// Reports the first element that is not finite. Returns true if there is one.
  bool report(const run_context& run) const { return report(run, 0, count); }
  bool report(const run_context& run, std::int64_t begin, std::int64_t end) const {
    const std::int64_t found = kernel::first_not_finite(data + begin, end - begin);
    if (found >= 0 && run.checks) run.checks->report(name, data, at, begin + found, device);
    return found >= 0;
  }
};
template <class T>
checked_shard<T> checked(const local_step<T>& step, const bound_value& v, std::string name) {
  return {std::move(name), v.as<const T>(step.device), v.elements(step.device), v.places[step.device],
          step.plan.on.devices()[step.device]};
}

/// The name of the parameter or optimizer state that a step updates in place. For a master value, the name of the parameter from which it
/// is computed.
inline std::string_view updated_name(const node& n, const plan_view& plan) {
  std::int32_t v = before_reshards(plan, n.input(0));
  while (plan.at(v).parameter < 0 && plan.at(v).producer >= 0 && plan.steps[std::size_t(plan.at(v).producer)].inputs > 0)
    v = before_reshards(plan, plan.steps[std::size_t(plan.at(v).producer)].input(0));
  const std::int32_t row = plan.at(v).parameter;
  return row < 0 ? std::string_view() : plan.parameters[std::size_t(row)].name.view();
}

template <class T>
action bind(kernel_of<op::check_finite>, const local_step<T>& step) {
  const code_place& line = step.n.place;
  const std::string name = "check_finite \"" + std::string(step.n.attr.label) + "\"" + (line.file ? " (" + line_text(line) + ")" : "");
  return action::elementwise(step.out_elements(), [x = checked(step, step.in_value(0), name), y = step.out()](
                                                      const run_context& run, std::int64_t begin, std::int64_t end) {
    x.report(run, begin, end);
    if (x.data != y && end > begin) std::memcpy(y + begin, x.data + begin, std::size_t(end - begin) * sizeof(T));
  });
}

template <class T>
action bind(kernel_of<op::count_not_finite>, const local_step<T>& step) {
  return [x = step.in(0), count = step.in_elements(0), y = step.out()](const run_context&) {
    *y = T(kernel::first_not_finite(x, count) >= 0 ? 1 : 0);
  };
}

/// The addend of this device in the sum over all devices. Among devices with equal shards, only the first adds its shard.
template <class T>
action bind(kernel_of<op::sum_of_squares>, const local_step<T>& step) {
  const bound_value& x = step.in_value(0);
  const auto is_equal = [](const kernel::placement& a, const kernel::placement& b) {
    return a.offset == b.offset && a.extent == b.extent;
  };
  const std::span<const int> mesh = step.plan.on.backend().extents();
  const int own = step.plan.on.devices()[step.device];
  bool adds = true;
  for (int device = 0; device < own && adds; ++device) adds = !is_equal(place(x, mesh, device), x.places[step.device]);
  return [x = step.in(0), count = adds ? step.in_elements(0) : 0, y = step.out()](const run_context&) {
    *y = kernel::sum_of_squares(x, count);
  };
}

}}}  // namespace gshard::v0::detail
