// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Shards whose numbers are checked by kernels, and their names in errors.

#include <gshard/exec/bind/finite_checks.hpp>
#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/bind/run_context.hpp>
#include <gshard/exec/bind/step_errors.hpp>
#include <gshard/exec/kernel/finite.hpp>

#include <cstddef>
#include <cstdint>
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
    if (found >= 0 && run.checks) run.checks->report(name, dtype_of<T>, data + begin + found, at, begin + found, device);
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

}}}  // namespace gshard::v0::detail
