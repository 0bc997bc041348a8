// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "simulate.hpp"

#include <gshard/comm/simulator/sweep_row.hpp>
#include <gshard/report/run_text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace plan_run {

namespace detail {
template <class... Values>
std::string format(const char* how, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, how, values...);
  return text;
}
}  // namespace detail

/// "36 layers, half of them in the encoder, 2048 experts in every other: 619.7 billion weights; 4.2 million tokens a step in 2048 groups"
inline std::string about(const gs::nn::translation_model& m) {
  const double weights = 1e-9 * double(m.expert_weights() + m.dense_weights());
  return detail::format("%d layers, half of them in the encoder, %lld experts in every other: %.1f billion weights; ", m.layers,
                        (long long)m.experts, weights) +
         detail::format("%.2f million tokens a step in %lld groups", 1e-6 * double(m.tokens), (long long)m.groups);
}

/// What the whole training takes.
inline std::string training(const gs::run_record& r, const gs::nn::translation_model& m, int cores) {
  const double steps = training_tokens / double(m.tokens), years = core_years(r.seconds, m, cores);
  return detail::format("training on 10^12 tokens: %.0f steps, %.2f days, %.2f core-years", steps, steps * r.seconds / 86400, years);
}

/// A table of the best rows.
inline std::string table(const std::vector<gs::sweep_row>& rows, std::size_t most) {
  std::string s = detail::format("%-34s %-28s %10s %12s %11s\n", "other ways, the cheapest first", "", "step", "core-years", "memory");
  for (std::size_t i = 0; i < std::min(most, rows.size()); ++i) {
    const gs::sweep_row& r = rows[i];
    s += detail::format("  %-32s %-28s %8.3f s %12.2f %7.2f GiB%s\n", r.mesh.c_str(), r.mapping.c_str(), r.seconds, r.core_years,
                        double(r.peak) / double(1 << 30), r.fits ? "" : "  does not fit");
  }
  return s;
}

}  // namespace plan_run
