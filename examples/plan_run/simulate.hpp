// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "models.hpp"

#include <gshard/exec/process/diagnostic.hpp>
#include <gshard/sim/run/dry_run.hpp>
#include <gshard/sim/run/presets.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace plan_run {

/// The axes of a mesh of devices, with their extents.
struct mesh_axes {
  std::vector<std::pair<std::string, int>> list;
  std::vector<std::string> snakes;  // axes whose devices follow a snake over the torus

  std::vector<int> extents() const {
    std::vector<int> e;
    for (const auto& [name, extent] : list) e.push_back(extent);
    return e;
  }
  bool has(const std::string& name) const {
    return std::any_of(list.begin(), list.end(), [&](const auto& axis) { return axis.first == name; });
  }
  bool is_snake(const std::string& name) const { return std::find(snakes.begin(), snakes.end(), name) != snakes.end(); }
  /// "data=2, expert=1024 (snake)"
  std::string text() const {
    std::string s;
    for (const auto& [name, extent] : list)
      s += (s.empty() ? "" : ", ") + name + "=" + std::to_string(extent) + (is_snake(name) ? " (snake)" : "");
    return s;
  }
};
/// The axes with more than one device, and always "expert".
inline mesh_axes make_axes(int data, int expert, int model) {
  mesh_axes m;
  if (data > 1) m.list.emplace_back("data", data);
  m.list.emplace_back("expert", expert);
  if (model > 1) m.list.emplace_back("model", model);
  return m;
}

/// As many devices along "expert" as there are experts, or a divisor of that number, and the others along "data".
inline mesh_axes default_axes(const translation_model& model, int devices) {
  int expert = devices;
  while (expert > model.experts && expert % 2 == 0) expert /= 2;
  return make_axes(devices / expert, expert, 1);
}

/// A plan and its sizes.
struct bound_plan {
  const gs::plan_tables* tables = nullptr;
  gs::extents sizes;

  gs::plan_view view() const { return tables->view(); }
};

/// Plans of models, each made once. A plan is the same for all extents of a mesh, and for any number of experts.
class planner {
 public:
  bound_plan plan(const translation_model& model, const mesh_axes& axes) {
    translation_model key = model;
    key.experts = 0;
    std::string names;
    gs::mesh_shape mesh;
    for (const auto& [name, extent] : axes.list) {
      mesh.push_back(name, gs::dynamic);
      names += name + ' ';
    }
    for (const made& m : made_)
      if (m.axes == names && m.of == key) return bind(*m.tables, model, axes);
    auto tables = std::make_unique<gs::plan_tables>(plan_of(model, mesh));
    if (tables->problem) throw gs::error(gs::describe(tables->problem));
    made_.push_back({names, key, std::move(tables)});
    return bind(*made_.back().tables, model, axes);
  }

 private:
  struct made {
    std::string axes;
    translation_model of;
    std::unique_ptr<gs::plan_tables> tables;
  };
  std::vector<made> made_;

  static bound_plan bind(const gs::plan_tables& t, const translation_model& model, const mesh_axes& axes) {
    const std::vector<int> extents = axes.extents();
    return {&t, t.view().bind(model.dims(), gs::list_view<int>(extents.data(), extents.size()))};
  }
};

/// Runs a plan on hardware. On a torus, the axes are mapped in row-major order, or as snakes.
inline gs::run_record simulate(const bound_plan& plan, const gs::hardware& on, const mesh_axes& axes, const gs::dry_run_options& options) {
  if (!on.is_torus()) return gs::dry_run(plan.view(), plan.sizes, on, options);
  gs::torus_mesh mesh = on.lay(axes.extents());
  for (std::size_t a = 0; a < axes.list.size(); ++a)
    if (axes.is_snake(axes.list[a].first)) mesh.follow_snake(int(a));
  return gs::dry_run(plan.view(), plan.sizes, on, mesh, options);
}

inline constexpr double training_tokens = 1e12;  // as for the paper's models

/// Years of one core for the whole training.
inline double core_years(double seconds, const translation_model& model, int cores) {
  return seconds * training_tokens / double(model.tokens) * cores / (365.25 * 24 * 3600);
}

}  // namespace plan_run
