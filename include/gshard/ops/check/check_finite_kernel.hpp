// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Kernels of check_finite, and of the sums by which optimizers check and clip gradients.

#include <gshard/exec/bind/checked_shard.hpp>
#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/bind/step_text.hpp>
#include <gshard/exec/kernel/finite.hpp>
#include <gshard/ops/check/check_finite.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace gshard { inline namespace v0 { namespace detail {

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
