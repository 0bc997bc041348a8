// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "simulate.hpp"

#include <gshard/sim/run/sweep_row.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace plan_run {

/// Runs a model on other meshes of the same devices, and on halves and quarters of the hardware. Runs it on the given mesh with other
/// options, with its axes in the other order, and on a torus of the same chips in another shape. The cheapest meshes that fit come first,
/// meshes that cannot run come last. A mesh that cannot be mapped to a torus gets no row.
class mesh_sweep {
 public:
  mesh_sweep(planner& plans, const translation_model& model, const gs::dry_run_options& options)
      : plans_(plans), model_(model), options_(options) {
    options_.report_only = true;
    options_.links = false;
  }

  std::vector<gs::sweep_row> run(const gs::hardware& on, const mesh_axes& asked) {
    rows_.clear();
    add(on, asked);
    const int cores = on.devices();
    for (int expert = cores; expert >= 1 && expert >= cores / 64; expert /= 2)
      for (int model = 1; model <= 8 && model <= model_.heads && expert * model <= cores; model *= 2)
        if (cores % (expert * model) == 0) add(on, make_axes(cores / expert / model, expert, model));
    mesh_axes other_order = asked;
    std::reverse(other_order.list.begin(), other_order.list.end());
    add(on, other_order);
    if (model_.one_hot_products) {
      translation_model by_index = model_;
      by_index.one_hot_products = false;
      add(on, asked, by_index, options_, ", by index");
    }
    if (!options_.overlap) {
      gs::dry_run_options aside = options_;
      aside.overlap = true;
      add(on, asked, model_, aside, ", overlapped");
    }
    for (const std::vector<int>& chips : other_shapes(on.chips)) add(on.with_chips(chips), asked);
    gs::hardware part = on;
    for (int i = 0; i < 2; ++i) {
      std::vector<int> chips = part.chips;
      const auto longest = std::max_element(chips.begin(), chips.end());
      if (*longest % 2 != 0 || part.devices() < 4) break;
      *longest /= 2;
      part = part.with_chips(chips);
      add(part, default_axes(model_, part.devices()));
    }
    std::stable_sort(rows_.begin(), rows_.end(), [](const gs::sweep_row& a, const gs::sweep_row& b) {
      if (a.problem.empty() != b.problem.empty()) return a.problem.empty();
      return a.fits != b.fits ? a.fits : a.core_years < b.core_years;
    });
    return rows_;
  }

 private:
  planner& plans_;
  translation_model model_;
  gs::dry_run_options options_;
  std::vector<gs::sweep_row> rows_;

  /// One dimension divided by 2 or 4, and another one multiplied by the same number.
  static std::vector<std::vector<int>> other_shapes(const std::vector<int>& chips) {
    std::vector<std::vector<int>> shapes;
    for (std::size_t from = 0; from < chips.size(); ++from)
      for (std::size_t to = 0; to < chips.size(); ++to)
        for (const int times : {2, 4}) {
          if (from == to || chips[from] % times != 0) continue;
          shapes.push_back(chips);
          shapes.back()[from] /= times;
          shapes.back()[to] *= times;
        }
    return shapes;
  }

  void add(const gs::hardware& on, const mesh_axes& axes) { add(on, axes, model_, options_, ""); }
  void add(const gs::hardware& on, const mesh_axes& axes, const translation_model& m, const gs::dry_run_options& options,
           const std::string& how) {
    const std::vector<int> extents = axes.extents();
    if (on.is_torus() && !gs::torus_mesh(on.topology, gs::list_view<int>(extents.data(), extents.size())).valid()) return;
    gs::sweep_row row;
    row.mesh = axes.text();
    row.mapping = on.name + how;
    row.limit = on.memory;
    for (const gs::sweep_row& r : rows_)
      if (r.mesh == row.mesh && r.mapping == row.mapping) return;
    try {
      const translation_model model = with_groups(m, on.devices());
      const gs::run_record r = simulate(plans_.plan(model, axes), on, axes, options);
      row.seconds = r.seconds;
      row.peak = r.memory.peak;
      row.fits = on.memory == 0 || row.peak <= on.memory;
      row.core_years = core_years(r.seconds, model, on.devices());
    } catch (const gs::error& e) {
      row.problem = e.what();
      row.fits = false;
    }
    rows_.push_back(std::move(row));
  }
};

}  // namespace plan_run
