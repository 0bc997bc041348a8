// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Learning-rate schedules: constant, linear, cosine, piecewise and inverse square root, with linear warm-up.
//
// rate(step) takes the number of a step, from 0. In the formulas, t = step + 1. In the first `warmup` steps, the rate is peak * t / warmup.

#include <gshard/core/base/math.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

namespace detail {
/// The share of the peak during warm-up: (step + 1) / warmup, at most 1.
inline double warmed_up(std::int64_t step, double warmup) { return warmup > 0 ? std::min((double(step) + 1) / warmup, 1.0) : 1.0; }
/// The share of the steps after the warm-up that are done, from 0 to 1.
inline double progress(std::int64_t step, double warmup, double steps) {
  return steps > warmup ? std::clamp((double(step) + 1 - warmup) / (steps - warmup), 0.0, 1.0) : 1.0;
}
}  // namespace detail

/// The Transformer's schedule (arXiv 1706.03762): peak * min(t / warmup, sqrt(warmup / t)).
struct inverse_square_root {
  double peak = 1e-3;
  double warmup = 400;

  double operator()(std::int64_t step) const {
    const double t = double(step) + 1;
    return peak * std::min(t / warmup, gshard::sqrt(warmup / t));
  }
};

/// peak * min(t / warmup, 1).
struct constant_rate {
  double peak = 1e-3;
  double warmup = 0;

  double operator()(std::int64_t step) const { return peak * detail::warmed_up(step, warmup); }
};

/// After the warm-up, peak + (end - peak) * q. Here q = (t - warmup) / (steps - warmup), at most 1. `steps` includes the warm-up.
struct linear_decay {
  double peak = 1e-3;
  double warmup = 0;
  double steps = 10000;
  double end = 0;

  double operator()(std::int64_t step) const {
    if (double(step) + 1 <= warmup) return peak * detail::warmed_up(step, warmup);
    return peak + (end - peak) * detail::progress(step, warmup, steps);
  }
};

/// After the warm-up, end + (peak - end) * (1 + cos(pi * q)) / 2. Here q = (t - warmup) / (steps - warmup), at most 1. `steps` includes the
/// warm-up.
struct cosine_decay {
  double peak = 1e-3;
  double warmup = 0;
  double steps = 10000;
  double end = 0;

  double operator()(std::int64_t step) const {
    if (double(step) + 1 <= warmup) return peak * detail::warmed_up(step, warmup);
    return end + (peak - end) * 0.5 * (1 + gshard::cos(3.14159265358979323846 * detail::progress(step, warmup, steps)));
  }
};

/// rates[n] * min(t / warmup, 1), where n counts the i with step >= begins[i]. `begins` is in ascending order:
/// `piecewise_rate<3>{.rates = {1e-3, 1e-4, 1e-5}, .begins = {3000, 6000}}`.
template <std::size_t Pieces>
  requires(Pieces > 0)
struct piecewise_rate {
  std::array<double, Pieces> rates{};
  std::array<std::int64_t, Pieces - 1> begins{};
  double warmup = 0;

  double operator()(std::int64_t step) const {
    std::size_t piece = 0;
    while (piece + 1 < Pieces && step >= begins[piece]) ++piece;
    return rates[piece] * detail::warmed_up(step, warmup);
  }
};

}}  // namespace gshard::v0
