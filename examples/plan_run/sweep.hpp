// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "simulate.hpp"

#include <gshard/comm/simulator/sweep_row.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace plan_run {

/// Runs a model on other meshes of the same devices, in other ways on the mesh of one axis, and on halves and quarters of the hardware: the
/// cheapest that fit first.
class mesh_sweep {
 public:
  mesh_sweep(planner& plans, const gs::nn::translation_model& model, const gs::dry_run_options& options)
      : plans_(plans), model_(model), options_(options) {
    options_.report_only = true;
  }

  std::vector<gs::sweep_row> run(const gs::hardware& on) {
    rows_.clear();
    const int cores = on.devices();
    for (int expert = cores; expert >= 1 && expert >= cores / 64; expert /= 2)
      for (int model = 1; model <= 8 && model <= model_.heads && expert * model <= cores; model *= 2)
        if (cores % (expert * model) == 0) add(on, make_axes(cores / expert / model, expert, model));
    if (model_.one_hot_products) {
      gs::nn::translation_model by_index = model_;
      by_index.one_hot_products = false;
      add(on, make_axes(1, cores, 1), by_index, options_, ", by index");
    }
    if (!options_.overlap) {
      gs::dry_run_options aside = options_;
      aside.overlap = true;
      add(on, make_axes(1, cores, 1), model_, aside, ", overlapped");
    }
    gs::hardware part = on;
    for (int i = 0; i < 2; ++i) {
      std::vector<int> chips = part.chips;
      const auto longest = std::max_element(chips.begin(), chips.end());
      if (*longest % 2 != 0 || part.devices() < 4) break;
      *longest /= 2;
      part = gs::make_hardware(on.of, chips);
      add(part, make_axes(1, part.devices(), 1));
    }
    std::stable_sort(rows_.begin(), rows_.end(), [](const gs::sweep_row& a, const gs::sweep_row& b) {
      return a.fits != b.fits ? a.fits : a.core_years < b.core_years;
    });
    return rows_;
  }

 private:
  planner& plans_;
  gs::nn::translation_model model_;
  gs::dry_run_options options_;
  std::vector<gs::sweep_row> rows_;

  void add(const gs::hardware& on, const mesh_axes& axes) { add(on, axes, model_, options_, ""); }
  void add(const gs::hardware& on, const mesh_axes& axes, const gs::nn::translation_model& m, const gs::dry_run_options& options,
           const std::string& how) {
    const gs::nn::translation_model model = with_groups(m, on.devices());
    const bound_plan plan = plans_.plan(model, axes);
    gs::sweep_row row;
    row.mesh = axes.text();
    row.mapping = on.name + how;
    row.capacity = on.memory;
    try {
      const gs::run_record r = gs::dry_run(plan.view(), plan.sizes, on, options);
      row.seconds = r.seconds;
      row.peak = r.memory.peak;
      row.fits = on.memory == 0 || row.peak <= on.memory;
      row.core_years = core_years(r.seconds, model, on.devices());
    } catch (const gs::error& e) {  // the mesh does not fit the torus
      return;
    }
    rows_.push_back(row);
  }
};

}  // namespace plan_run
