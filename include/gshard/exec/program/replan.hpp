// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A program planned again when its extents are known, with the same inputs, parameters and outputs. What that would save.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/ir/dim.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/core/program/program_options.hpp>
#include <gshard/exec/program/assumed_extents.hpp>
#include <gshard/exec/program/executor.hpp>
#include <gshard/exec/tensor/cluster.hpp>

#include <cstdint>
#include <string>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/core/cost/step_time.hpp>
#include <gshard/core/program/compile.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/exec/bind/step_text.hpp>
#include <gshard/exec/process/diagnostic.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <map>
#include <span>
#endif

namespace gshard { inline namespace v0 {

/// The first argument of an executable that plans its program again, at its extents and on its cluster. Inputs, outputs and parameters keep
/// the shardings of the program's plan, so stores, tensors and checkpoints fit both. Sums may have another order than in that plan.
/// @see executable, plan_report
struct replan_t {};
inline constexpr replan_t replan{};

/// What one run of a plan costs a device at some extents: bytes received, floating-point operations of products, bytes held, and the
/// seconds that the planner's machine, `machine{}`, takes.
struct plan_cost {
  std::int64_t received = 0;
  double flops = 0;
  std::int64_t held = 0;
  double seconds = 0;
};

/// The plan of an executable, and another one that is made for its extents. Both have the same inputs, outputs and parameters.
struct plan_report {
  /// A tensor, and the bytes that a device receives of it in a run.
  struct moved_tensor {
    std::string name;  ///< "table", "the input BF", or "einsum at model.cpp:12"
    std::int64_t received = 0, received_replanned = 0;
  };

  std::vector<assumed_extent> assumed;  ///< The extents that the plan assumed, and which of them decide.
  plan_cost cost;          ///< Of the plan that runs.
  plan_cost replanned;     ///< Of a plan for these extents; as `cost` if there is none.
  std::string problem;     ///< Why there is no plan for these extents; normally empty.
  std::vector<moved_tensor> tensors;  ///< At most three: those whose received bytes differ most.

  /// A paragraph: both costs, and the tensors that make the difference.
  std::string text() const;
};

namespace detail {
/// The plan of a traced program for these extents. Its inputs, parameters and outputs have the shardings of `like`. On failure it has a
/// `problem`.
plan_tables plan_at(const graph& traced, const plan_view& like, const any_cluster& on, const dims& extents, compile_options options);

/// The error of an executable whose program has no plan for its extents.
std::string problem_of_replan(const plan_tables& made);

/// Compares the plan of an executable with a plan for its extents. `traced`: its program before any pass.
plan_report make_plan_report(const graph& traced, const compile_options& options, const executor& run);
}  // namespace detail

#if GSHARD_HAS_BODIES

namespace detail {

GSHARD_INLINE plan_tables plan_at(const graph& traced, const plan_view& like, const any_cluster& on, const dims& extents,
                                  compile_options options) {
  mesh_shape mesh = like.mesh;
  for (int a = 0; a < mesh.rank(); ++a)
    if (const int axis = on.mesh().find(mesh.name(a)); axis >= 0) mesh.extents[std::size_t(a)] = on.extent(axis);
  for (std::size_t i = 0; i < extents.count; ++i) options.known.set(extents.entries[i].letter, extents.entries[i].extent);
  options.uneven = true;
  builder b;
  b.mesh = mesh;
  b.program = traced;
  graph& g = b.program;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) g.at(g.inputs[i].value).layout = like.at(like.inputs[i].value).layout;
  for (parameter& p : g.parameters)
    if (const parameter* const kept = like.find(p.name.view())) g.at(p.value).layout = like.at(kept->value).layout;
  for (std::size_t i = 0; i < g.outputs.size(); ++i)
    if (const sharding& layout = like.at(like.outputs[i].value).layout; layout.partial == 0)
      g.outputs[i].value = emit_annotate({&b, g.outputs[i].value}, layout).id;
  return compile(g, mesh, options);
}

GSHARD_INLINE std::string problem_of_replan(const plan_tables& made) {
  return made.problem ? "executable: there is no plan for these extents: " + describe(made.problem) : "";
}

/// Names the tensors that move: the tensor before it is resharded.
class moved_names {
 public:
  explicit moved_names(const plan_view& plan) : plan_(plan), made_by_(plan.values.size(), -1), gradient_of_(plan.values.size(), -1) {
    for (std::size_t i = plan.steps.size(); i-- > 0;) {
      const node& step = plan.steps[i];
      for (int o = 0; o < step.outputs; ++o) made_by_[std::size_t(step.output(o))] = std::int32_t(i);
      for (int k = 0; k < step.inputs; ++k) {
        std::int32_t& of = gradient_of_[std::size_t(step.input(k))];
        if (updates_parameters(step) && plan.at(step.input(k)).parameter < 0) of = plan.at(step.input(0)).parameter;
        else if (is_same_tensor(step)) of = gradient_of_[std::size_t(step.output(k))];
      }
    }
  }
  /// "table", "the gradient of table", "the input BF", or "einsum at model.cpp:12".
  std::string operator()(std::int32_t v) const {
    for (;;) {
      const std::int32_t maker = made_by_[std::size_t(v)];
      if (plan_.at(v).parameter >= 0 || maker < 0) return text_of_value(plan_, v);
      if (const std::int32_t p = gradient_of_[std::size_t(v)]; p >= 0)
        return "the gradient of " + std::string(plan_.parameters[std::size_t(p)].name.view());
      const node& step = plan_.steps[std::size_t(maker)];
      if (!is_same_tensor(step)) return kind_text(step) + place_text(step.place);
      int o = 0;
      while (step.output(o) != v) ++o;
      v = step.input(o);
    }
  }

 private:
  plan_view plan_;
  std::vector<std::int32_t> made_by_;      // by value: its step, or -1
  std::vector<std::int32_t> gradient_of_;  // by value: the parameter that an optimizer updates by it, or -1

  static bool is_same_tensor(const node& step) {
    return (traits(step.kind).reshards || step.kind == op::annotate) && step.inputs == step.outputs;
  }
};

/// Bytes that a device receives in a run, by the tensor that moves.
inline std::map<std::string, std::int64_t> received_by_tensor(const plan_view& plan, const extents& sizes) {
  const moved_names name_of(plan);
  std::map<std::string, std::int64_t> all;
  for (const node& step : plan.steps) {
    const std::int64_t bytes = plan.bytes_received(step, sizes);
    if (bytes <= 0) continue;
    if (is_looped_product(step.kind) || step.inputs == 1) {
      all[name_of(is_looped_product(step.kind) ? ring_operand(step) : step.input(0))] += bytes;
      continue;
    }
    double whole = 0;  // of a combined step: each tensor has its share
    for (int i = 0; i < step.inputs; ++i) whole += double(shard_bytes(plan, step.output(i), sizes));
    for (int i = 0; i < step.inputs && whole > 0; ++i)
      all[name_of(step.input(i))] += std::int64_t(double(bytes) * double(shard_bytes(plan, step.output(i), sizes)) / whole);
  }
  return all;
}

inline plan_cost cost_of(const plan_view& plan, const extents& sizes) {
  const step_price p = price(plan, sizes, machine{});
  return {plan.bytes_received(sizes), flops(plan, sizes), p.bytes(), p.seconds()};
}

GSHARD_INLINE plan_report make_plan_report(const graph& traced, const compile_options& options, const executor& run) {
  const plan_view& plan = run.plan();
  const extents& sizes = run.sizes();
  dims extents_of;
  for (std::size_t i = 0; i < plan.dims.size(); ++i)
    if (plan.dims[i].what == dim::kind::bound) extents_of.set(plan.dims[i].letter, sizes.dim(int(i)));
  const plan_tables other = plan_at(traced, plan, run.cluster(), extents_of, options);
  plan_report report;
  // A plan that was made for the extents of its executable assumes nothing.
  bool assumes = false;
  for (const dim& d : plan.dims) assumes = assumes || (d.what == dim::kind::bound && !d.known);
  for (int a = 0; a < plan.mesh.rank(); ++a) assumes = assumes || plan.mesh.static_extent(a) == dynamic;
  if (assumes) report.assumed = assumed_extents(traced, plan.mesh, options);
  report.cost = report.replanned = cost_of(plan, sizes);
  if (other.problem) {
    report.problem = describe(other.problem);
    return report;
  }
  const plan_view view = other.view();
  const extents others = view.bind(extents_of, {});
  report.replanned = cost_of(view, others);
  std::map<std::string, plan_report::moved_tensor> moved;
  for (const auto& [name, bytes] : received_by_tensor(plan, sizes)) moved[name].received = bytes;
  for (const auto& [name, bytes] : received_by_tensor(view, others)) moved[name].received_replanned = bytes;
  for (auto& [name, tensor] : moved) {
    tensor.name = name;
    if (tensor.received != tensor.received_replanned) report.tensors.push_back(tensor);
  }
  const auto difference = [](const plan_report::moved_tensor& t) {
    return t.received > t.received_replanned ? t.received - t.received_replanned : t.received_replanned - t.received;
  };
  std::ranges::stable_sort(report.tensors, [&](const auto& a, const auto& b) { return difference(a) > difference(b); });
  if (report.tensors.size() > 3) report.tensors.resize(3);
  return report;
}

}  // namespace detail

GSHARD_INLINE std::string plan_report::text() const {
  const auto cost_text = [](const plan_cost& c) {
    char computed[64];
    std::snprintf(computed, sizeof computed, "%.3g flops, takes %.3g us", c.flops, 1e6 * c.seconds);
    return "receives " + std::to_string(c.received) + " bytes, computes " + computed + ", holds " + std::to_string(c.held) + " bytes";
  };
  std::string s = "the plan " + cost_text(cost) + "\n";
  s += describe(assumed);
  if (!problem.empty()) return s + "there is no plan for these extents: " + problem + "\n";
  s += "a plan for these extents " + cost_text(replanned) + "\n";
  for (const moved_tensor& t : tensors)
    s += "  " + t.name + ": " + std::to_string(t.received) + " bytes received, " + std::to_string(t.received_replanned) + " in that plan\n";
  return s;
}

#endif

}}  // namespace gshard::v0
