// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

// The typical time of samples, and how much they differ.
namespace calibrate {

struct summary {
  double typical = 0;  ///< the mean of the middle half of the samples
  double spread = 0;   ///< the width of the middle half, as a share of `typical`
};

inline summary summarize(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const std::size_t skipped = samples.size() / 4, end = samples.size() - skipped;
  double sum = 0;
  for (std::size_t i = skipped; i < end; ++i) sum += samples[i];
  const double mean = sum / double(end - skipped);
  return {mean, mean > 0 ? (samples[end - 1] - samples[skipped]) / mean : 0};
}

}  // namespace calibrate
