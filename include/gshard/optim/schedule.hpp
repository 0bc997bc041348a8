// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Learning-rate schedules: linear warm-up, then inverse square root.

#include <gshard/base/math.hpp>

#include <algorithm>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// Linear warm-up to `peak` over `warmup` steps, then peak * gshard::sqrt(warmup / t): the Transformer's inverse-square-root schedule.
struct inverse_square_root {
  double peak = 1e-3;
  double warmup = 400;

  double operator()(std::int64_t step) const {
    const double t = double(step) + 1;
    return peak * std::min(t / warmup, gshard::sqrt(warmup / t));
  }
};

}}  // namespace gshard::v0
