// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Stragglers: processes that compute longer than the others in most of the last steps.

#include <gshard/core/base/compiler.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 {

/// The rule for stragglers. A step of a process is slow if it computes longer than `ratio` times the median, and by more than `excess`. The
/// process is a straggler if at least `least` of the last `last_steps` steps are slow.
struct straggler_rule {
  double ratio = 1.3;
  double excess = 1e-3;       ///< seconds; shorter delays are noise of the machine
  std::uint32_t least = 5;
  std::uint32_t last_steps = 10;  ///< 0: stragglers are not searched
  friend bool operator==(const straggler_rule&, const straggler_rule&) = default;
};

/// A process that became a straggler, or stopped being one.
struct slow_process {
  int process = 0;
  std::string host;
  std::uint32_t step = 0;        ///< after the last one
  std::uint32_t slow_steps = 0;  ///< of the last steps
  std::uint32_t last_steps = 0;
  double seconds = 0;  ///< of computation of the process per step: mean over the last steps
  double median = 0;   ///< the median of all processes: mean over the last steps
  bool ended = false;  ///< it stopped being a straggler
};

/// The median; of an even count the lower one, so that the slower one of two processes can be a straggler. 0 if there are none.
inline double lower_median(std::vector<double> of) {
  if (of.empty()) return 0;
  const auto middle = of.begin() + std::ptrdiff_t((of.size() - 1) / 2);
  std::nth_element(of.begin(), middle, of.end());
  return *middle;
}

/// Judges the last steps. `seconds[p][i]`: the computing time of process p in step i, without waiting. All processes have the same number
/// of steps. Returns one row per process; `host`, `step` and `ended` are left to the caller.
inline std::vector<slow_process> judge_last_steps(std::span<const std::vector<double>> seconds, const straggler_rule& rule) {
  std::vector<slow_process> rows(seconds.size());
  const std::size_t steps = seconds.empty() ? 0 : seconds[0].size();
  double medians = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    std::vector<double> in_step;
    for (const std::vector<double>& of_process : seconds) in_step.push_back(of_process[i]);
    const double median = lower_median(in_step);
    medians += median;
    for (std::size_t p = 0; p < rows.size(); ++p) {
      rows[p].seconds += in_step[p];
      rows[p].slow_steps += in_step[p] > rule.ratio * median && in_step[p] > median + rule.excess;
    }
  }
  for (std::size_t p = 0; p < rows.size(); ++p) {
    rows[p].process = int(p);
    rows[p].last_steps = std::uint32_t(steps);
    rows[p].seconds /= double(std::max<std::size_t>(steps, 1));
    rows[p].median = medians / double(std::max<std::size_t>(steps, 1));
  }
  return rows;
}

}}  // namespace gshard::v0
