// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "paper_fit.hpp"
#include "simulate.hpp"

#include <gshard/sim/report/run_text.hpp>
#include <gshard/sim/run/sweep_row.hpp>

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

/// "36 layers, 18 of them in the encoder, 2048 experts in 18 layers: 619.4 billion weights; 4.19 million tokens a step in 2048 groups"
inline std::string about(const translation_model& m) {
  const double weights = 1e-9 * double(m.expert_weights() + m.dense_weights());
  return detail::format("%d layers, %d of them in the encoder, %lld experts in %d layers: %.1f billion weights; ", m.layers,
                        m.encoder_layers(), (long long)m.experts, m.expert_layers(), weights) +
         detail::format("%.2f million tokens a step in %lld groups", 1e-6 * double(m.tokens), (long long)m.groups);
}

/// Names the fitted values of `used`, except the share of the links in all-to-alls, which is printed with the hardware.
inline std::string fitted(const gs::efficiency& used) {
  return std::string("how often routing goes over its tensors") +
         (used.memory == gs::efficiency{}.memory ? ", and the share of the memory's rate: both" : ":") + " fitted, not physical";
}

/// "one of the 2 cores of a chip of tpu-v3"
inline std::string what_a_core_is(const gs::hardware& on) {
  const std::string of(on.of.name);
  if (!on.is_torus()) return "a device of " + of;
  return on.topology.cores == 1 ? "a chip of " + of : "one of the " + std::to_string(on.topology.cores) + " cores of a chip of " + of;
}

/// Time and cost of the whole training, as simulated, and scaled by the fit to the paper's measurements.
inline std::string training(const gs::run_record& r, const translation_model& m, const gs::hardware& on, const paper_fit& fit) {
  const double steps = training_tokens / double(m.tokens), days = steps * r.seconds / 86400;
  const double years = core_years(r.seconds, m, on.devices());
  return detail::format("training on 10^12 tokens: %.0f steps, %.2f days, %.2f core-years", steps, days, years) + " (a core: " +
         what_a_core_is(on) + ")\n" +
         detail::format("  simulated, the paper's six models take %.3f of the time that it measured, each %.2f to %.2f times that;\n",
                        fit.factor, fit.least, fit.most) +
         detail::format("  by this fit %.2f days, %.2f core-years", days / fit.factor, years / fit.factor);
}

/// A table of the best rows, and of meshes that cannot run.
inline std::string table(const std::vector<gs::sweep_row>& rows, std::size_t most) {
  const std::size_t running = std::size_t(std::count_if(rows.begin(), rows.end(), [](const auto& r) { return r.problem.empty(); }));
  const std::size_t shown = std::min(running, most) + std::min(rows.size() - running, most);
  const std::string title = std::to_string(rows.size()) + " ways tried" +
                            (shown < rows.size() ? ", the best " + std::to_string(shown) : "") + ", the cheapest first";
  std::string s = detail::format("%-63s %10s %12s %11s\n", title.c_str(), "step", "core-years", "memory");
  std::size_t best = 0, broken = 0;
  for (const gs::sweep_row& r : rows) {
    if ((r.problem.empty() ? best : broken)++ >= most) continue;
    s += detail::format("  %-32s %-28s ", r.mesh.c_str(), r.mapping.c_str());
    s += !r.problem.empty() ? r.problem + "\n"
                            : detail::format("%10s %12.2f %7.2f GiB%s\n", gs::describe_seconds(r.seconds).c_str(), r.core_years,
                                             double(r.peak) / double(1 << 30), r.fits ? "" : "  does not fit");
  }
  return s;
}

}  // namespace plan_run
