// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "paper_fit.hpp"
#include "simulate.hpp"

#include <gshard/comm/simulator/sweep_row.hpp>
#include <gshard/report/run_text.hpp>

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

/// "36 layers, 18 of them in the encoder, 2048 experts in 18 layers: 619.4 billion weights; 4.19 million tokens a step in 2048 groups"
inline std::string about(const gs::nn::translation_model& m) {
  const double weights = 1e-9 * double(m.expert_weights() + m.dense_weights());
  return detail::format("%d layers, %d of them in the encoder, %lld experts in %d layers: %.1f billion weights; ", m.layers,
                        m.encoder_layers(), (long long)m.experts, m.expert_layers(), weights) +
         detail::format("%.2f million tokens a step in %lld groups", 1e-6 * double(m.tokens), (long long)m.groups);
}

/// What the whole training takes, as simulated and by the fit to what the paper measured.
inline std::string training(const gs::run_record& r, const gs::nn::translation_model& m, int cores, const paper_fit& fit) {
  const double steps = training_tokens / double(m.tokens), days = steps * r.seconds / 86400, years = core_years(r.seconds, m, cores);
  return detail::format("training on 10^12 tokens: %.0f steps, %.2f days, %.2f core-years\n", steps, days, years) +
         detail::format("  simulated, the paper's six models take %.3f of the time that it measured, each %.2f to %.2f times that;\n",
                        fit.factor, fit.least, fit.most) +
         detail::format("  by this fit %.2f days, %.2f core-years", days / fit.factor, years / fit.factor);
}

/// A table of the best rows, and of those that cannot run.
inline std::string table(const std::vector<gs::sweep_row>& rows, std::size_t most) {
  std::string s = detail::format("%-34s %-28s %10s %12s %11s\n", "other ways, the cheapest first", "", "step", "core-years", "memory");
  std::size_t best = 0, broken = 0;
  for (const gs::sweep_row& r : rows) {
    if ((r.problem.empty() ? best : broken)++ >= most) continue;
    s += detail::format("  %-32s %-28s ", r.mesh.c_str(), r.mapping.c_str());
    s += !r.problem.empty() ? r.problem + "\n"
                            : detail::format("%8.3f s %12.2f %7.2f GiB%s\n", r.seconds, r.core_years, double(r.peak) / double(1 << 30),
                                             r.fits ? "" : "  does not fit");
  }
  return s;
}

}  // namespace plan_run
