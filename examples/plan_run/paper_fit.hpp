// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "simulate.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace plan_run {

/// The ratio of simulated steps to the steps that arXiv 2006.16668 measured (table 3).
struct paper_fit {
  double factor = 1;           // simulated over measured, the geometric mean of its models
  double least = 1, most = 1;  // the extremes of single models, divided by that factor
};

/// Simulates with the same options, but without faults.
inline paper_fit fit_to_paper(planner& plans, gs::dry_run_options options) {
  options.faults = {};
  options.links = false;
  options.report_only = true;
  std::vector<double> ratios;
  for (const named_model& m : models) {
    if (m.steps_a_second == 0) continue;
    const auto cores = int(m.experts);
    int rows = 1, columns = cores / 2;  // as square as possible
    while (rows < columns) rows *= 2, columns /= 2;
    const bound_plan plan = plans.plan(*find_model(m.name), make_axes(1, cores, 1));
    const gs::hardware on = gs::make_hardware(gs::find_preset("tpu-v3"), {rows, columns});
    ratios.push_back(gs::dry_run(plan.view(), plan.sizes, on, options).seconds * m.steps_a_second);
  }
  double logs = 0;
  for (const double r : ratios) logs += std::log(r);
  paper_fit fit;
  fit.factor = std::exp(logs / double(ratios.size()));
  fit.least = *std::min_element(ratios.begin(), ratios.end()) / fit.factor;
  fit.most = *std::max_element(ratios.begin(), ratios.end()) / fit.factor;
  return fit;
}

}  // namespace plan_run
