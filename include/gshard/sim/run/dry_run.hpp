// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Dry runs: simulates time, memory and traffic of a plan on given hardware, without computing numbers.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/exec/bind/check_sizes.hpp>
#include <gshard/exec/bind/step_text.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/sim/network/plan_links.hpp>
#include <gshard/sim/record/run_record.hpp>
#include <gshard/sim/run/device_clock.hpp>
#include <gshard/sim/run/device_memory.hpp>
#include <gshard/sim/run/presets.hpp>
#include <gshard/sim/run/recompute.hpp>
#include <gshard/sim/run/step_cost.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// The activations that are recomputed for the gradient instead of being kept.
enum class recompute : std::uint8_t {
  never,
  when_needed,  ///< of the first layers, as few as the memory of a device requires
  always,
};

struct dry_run_options {
  efficiency share{};
  std::int64_t memory = 0;  ///< bytes of a device; 0: those of the hardware, or no limit
  recompute activations = recompute::when_needed;
  /// Collectives overlap with steps that do not need their results, as in executors. @see async_schedule
  bool overlap = false;
  /// A plan that does not fit into memory is recorded, and is no error.
  bool report_only = false;
  bool links = false;               ///< record the load of each link; for some thousand devices that takes a tenth of a second
  std::size_t largest_tensors = 8;  ///< number of tensors listed at the peak of memory
  gshard::faults faults{};
};

namespace detail {

inline std::string amount_text(std::int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", double(bytes) / double(std::int64_t(1) << 30));
  return text;
}
/// Writes an order of steps with all iterations of each loop, at most `most`. A loop without a known trip count has one.
class iteration_writer {
 public:
  iteration_writer(const plan_view& plan, const extents& e, const step_schedule& order, std::int64_t most)
      : plan_(plan), e_(e), order_(order), most_(most) {}

  step_schedule write() {
    append(0, order_.size());
    return std::move(all_);
  }

 private:
  const plan_view& plan_;
  const extents& e_;
  const step_schedule& order_;
  std::int64_t most_;
  step_schedule all_;

  const node& node_of(std::size_t row) const { return plan_.steps[std::size_t(order_[row].step)]; }
  void append(std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      all_.push_back(order_[row]);
      if (traits(node_of(row).kind).nesting <= 0) continue;
      std::size_t last = row + 1;  // its loop_end
      for (int depth = 1; last < end; ++last)
        if ((depth += traits(node_of(last).kind).nesting) == 0) break;
      const dim_list& dims = node_of(row).attr.dims;
      const std::int64_t iterations = dims.size() == 0 ? 1 : std::min(most_, e_.dim(dims[0]));
      for (std::int64_t i = 0; i < iterations; ++i) append(row + 1, last);
      row = last - 1;
    }
  }
};
inline step_schedule with_iterations(const plan_view& plan, const extents& e, const step_schedule& order, std::int64_t most) {
  return iteration_writer(plan, e, order, most).write();
}

/// `peak`: the bytes that an order needs.
template <class Peak>
step_schedule schedule_for(const recomputation& layers, Peak peak, recompute how, std::int64_t limit) {
  if (how == recompute::always) return layers.schedule(layers.layers());
  step_schedule all = layers.schedule(0);
  const auto fits = [&](const step_schedule& order) { return peak(order) <= limit; };
  if (how == recompute::never || limit == 0 || layers.layers() == 0 || fits(all)) return all;
  std::int32_t few = 0, enough = layers.layers();  // dropping the first few does not suffice
  while (enough - few > 1) {
    const std::int32_t middle = few + (enough - few) / 2;
    (fits(layers.schedule(middle)) ? enough : few) = middle;
  }
  return layers.schedule(enough);
}

inline std::string overrun_text(const plan_view& plan, const memory_record& m) {
  std::string s = "device 0 runs out of memory in step " + step_text(plan, m.step) + ": ";
  std::int64_t asked = 0;
  for (const std::int64_t b : m.bytes) asked += b;
  s += "it holds " + amount_text(m.limit) + " and needs " + amount_text(asked) + " there, at most " + amount_text(m.peak);
  s += ". The largest live tensors: ";
  for (std::size_t i = 0; i < m.largest.size(); ++i)
    s += (i ? ", " : "") + text_of_value(plan, m.largest[i].value) + " (" + amount_text(m.largest[i].bytes) + ")";
  return s;
}

/// A plan with the costs of its steps and tensors. It runs any order of its steps.
class priced_plan {
 public:
  template <network Network>
  priced_plan(const plan_view& plan, const extents& e, const machine& on, const Network& network, const dry_run_options& options)
      : priced_plan(plan, e, options) {
    if (!options.faults.links.empty()) throw error("faults: links of a torus_mesh have faults, this network has none");
    if constexpr (requires { network.fits(list_view<int>(mesh_)); })
      if (!network.fits(list_view<int>(mesh_)))
        throw error("dry run: the torus_mesh maps another mesh than the plan's, or not each of its devices once");
    costs_ = costs_of(plan, e, on, network, options.share);
  }
  priced_plan(const plan_view& plan, const extents& e, const machine& on, const torus_mesh& mesh, const dry_run_options& options)
      : priced_plan(plan, e, options) {
    place(on, mesh);
  }
  priced_plan(const plan_view& plan, const extents& e, const hardware& on, const dry_run_options& options)
      : priced_plan(plan, e, options) {
    take(on);
    if (on.is_torus()) {
      place(on.device, on.lay(mesh_));
    } else {
      if (!options.faults.links.empty()) throw error("faults: " + on.name + " has no links between chips");
      costs_ = costs_of(plan, e, on.device, on.device, options.share);
    }
  }
  priced_plan(const plan_view& plan, const extents& e, const hardware& on, const torus_mesh& mesh, const dry_run_options& options)
      : priced_plan(plan, e, options) {
    if (!on.is_torus()) throw error(on.name + " is a cluster: no mesh can be mapped to a torus on it");
    if (mesh.topology() != on.topology) throw error("the mesh is mapped to another torus than that of " + on.name);
    take(on);
    place(on.device, mesh);
  }

  const std::vector<int>& mesh() const { return mesh_; }
  const std::vector<step_record>& costs() const { return costs_; }
  /// The order of the steps, with the recomputation that the options ask for.
  step_schedule schedule() const {
    const auto peak = [&](const step_schedule& order) { return memory_.peak(with_iterations(plan_, e_, order, iterations_of_peak)); };
    return schedule_for(recomputation(plan_), peak, options_.activations, options_.memory);
  }
  /// No iteration after these needs more memory.
  static constexpr std::int64_t iterations_of_peak = 2;
  /// Throws if the memory of a device is too small, unless the options ask for a report only.
  memory_record memory(const step_schedule& order) const {
    memory_record m = memory_.record(order, e_, options_.memory, options_.largest_tensors);
    if (m.limit > 0 && m.peak > m.limit && !options_.report_only)
      throw error(overrun_text(plan_, memory_.overrun(order, e_, options_.memory, options_.largest_tensors)));
    return m;
  }
  run_record run(const step_schedule& order, const faults& broken) const {
    run_record r;
    for (int a = 0; a < plan_.mesh.rank(); ++a) r.axes.emplace_back(plan_.mesh.name(a));
    r.extents = mesh_;
    r.memory = memory(order);
    r.steps.reserve(order.size());
    for (const scheduled_step& s : order) {
      r.steps.push_back(costs_[std::size_t(s.step)]);
      r.steps.back().recomputed = r.steps.back().recomputed || s.recomputed;
    }
    const measured_times& measured = on_ ? on_->device.measured : measured_times{};
    clock_times clocks = run_clocks(plan_, mesh_, broken, schedule_, r.steps, memory_.after(order), 8, measured.hidden);
    r.tracks = std::move(clocks.tracks);
    r.seconds = clocks.seconds + measured.run_start;
    for (const time_span& s : r.tracks[0].spans)
      if (s.what != activity::wait) r.parts[std::size_t(r.steps[std::size_t(s.row)].part)] += s.end - s.begin;
    describe(r, broken);
    return r;
  }

 private:
  plan_view plan_;
  extents e_;
  dry_run_options options_;
  list<async_interval> schedule_;
  device_memory memory_;
  std::vector<step_record> costs_;  // by step
  std::vector<int> mesh_;
  std::optional<hardware> on_;
  std::optional<torus_mesh> place_;

  priced_plan(const plan_view& plan, const extents& e, const dry_run_options& options)
      : plan_(plan), e_(checked(plan, e)), options_(options), schedule_(options.overlap ? async_schedule(plan, e) : in_turn(plan)),
        memory_(plan, e, schedule_) {
    options.share.check();
    for (int a = 0; a < plan.mesh.rank(); ++a) mesh_.push_back(e.axis(a));
  }
  /// Extents may differ from those that the program knows, so that one plan can be priced for several sizes.
  static const extents& checked(const plan_view& plan, const extents& e) {
    check_sizes(plan, e, "dry run");
    return e;
  }
  void take(const hardware& on) {
    on_ = on;
    on_->topology.all_to_all_efficiency *= options_.share.all_to_all;
    if (options_.memory == 0) options_.memory = on.memory;
  }
  void place(const machine& on, const torus_mesh& mesh) {
    std::vector<int> laid;
    for (int a = 0; a < mesh.rank(); ++a) laid.push_back(mesh.extent(a));
    if (laid != mesh_ || !mesh.valid())
      throw error("a plan for a mesh of " + extents_text(mesh_) + " devices is mapped to a torus as one of " + extents_text(laid) +
                  (mesh.valid() ? "" : ", which does not give each of its devices a place of its own"));
    place_ = mesh;
    place_->topology().all_to_all_efficiency *= options_.share.all_to_all;
    costs_ = costs_of(plan_, e_, on, faulty_torus(*place_, options_.faults), options_.share);
  }

  static std::string percent_text(double share) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g %%", 100 * share);
    return text;
  }
  static std::string extents_text(const std::vector<int>& list) {
    std::string s;
    for (const int n : list) s += (s.empty() ? "" : "x") + std::to_string(n);
    return s;
  }
  void describe(run_record& r, const faults& broken) const {
    if (place_) describe_place(r, broken);
    if (on_) {
      r.network = on_->name;
      r.source = on_->of.source;
      r.assumptions = assumptions(*on_);
    }
    const efficiency& share = options_.share;
    if (on_ && on_->device.measured.has_operations())
      r.assumptions.push_back("times of products, other operations and collectives are measured");
    else
      r.assumptions.push_back("products run at " + percent_text(share.products) + " of the peak, those of many small matrices (below " +
                              std::to_string(share.small_product) + ") at " + percent_text(share.batched_products) + ", all else at " +
                              percent_text(share.memory) + " of the memory's rate; routing goes over its tensors " +
                              std::to_string(int(share.gating_passes)) + " times" +
                              (share.fusion ? "; elementwise operations are fused" : ""));
    r.assumptions.push_back(options_.overlap ? "collectives overlap with independent computation"
                                             : "collectives do not overlap with computation");
    int again = 0;
    for (const step_record& s : r.steps) again += s.recomputed;
    if (again > 0) r.assumptions.push_back(std::to_string(again) + " steps of the forward pass are run again for the gradient");
  }
  void describe_place(run_record& r, const faults& broken) const {
    const torus& t = place_->topology();
    r.chips.assign(t.extents.begin(), t.extents.begin() + t.dims);
    r.cores_per_chip = t.cores;
    bool in_order = true;
    for (int d = 0; d < t.devices(); ++d) {
      r.chip_of.push_back(place_->chip(d));
      in_order = in_order && r.chip_of.back() == d / t.cores;
    }
    if (in_order) r.chip_of.clear();
    if (options_.links) r.links = plan_links(*place_, broken).loads(plan_, r.steps);
  }
};

/// Runs the steps of a plan. A loop with a known trip count runs all iterations, another loop runs one. If the record would have more than
/// `most_rows`, every loop runs one.
inline run_record run_once(const plan_view& plan, const extents& e, const priced_plan& p, const faults& broken) {
  constexpr double most_rows = 1 << 18;
  double rows = 0, factor = 1;  // of the loops around a step
  std::vector<double> around;
  bool is_known = true;
  for (const node& n : plan.steps) {
    rows += factor;
    if (traits(n.kind).nesting > 0) {
      around.push_back(factor);
      is_known = is_known && n.attr.dims.size() > 0;
      if (n.attr.dims.size() > 0) factor *= double(e.dim(n.attr.dims[0]));
    } else if (traits(n.kind).nesting < 0) {
      factor = around.back();
      around.pop_back();
    }
  }
  const bool all = rows <= most_rows;
  const step_schedule order = p.schedule();
  run_record r = p.run(with_iterations(plan, e, order, all ? std::numeric_limits<std::int64_t>::max() : 1), broken);
  if (!all) r.assumptions.push_back("one iteration of each loop is simulated, because all would have more than 262144 steps");
  else if (!is_known) r.assumptions.push_back("one iteration of each loop with a run-time trip count is simulated");
  return r;
}

}  // namespace detail

/// Simulates a plan without computing numbers: the times of its steps on devices like `on` that `network` connects, and their memory.
/// Devices with the same work are simulated once, so the cost does not grow with their number. If faults make them differ, the record has a
/// track for each of at most eight classes of equal devices. A while loop runs one iteration, a scan runs all.
/// Throws `gshard::error` if the memory of a device is too small, with the step and the largest tensors. Throws if a device is dead, with
/// the devices that wait for it. Throws if an efficiency is not a share, or if faults name links that the network does not have.
template <network Network>
run_record dry_run(const plan_view& plan, const extents& e, const machine& on, const Network& network,
                   const dry_run_options& options = {}) {
  return detail::run_once(plan, e, {plan, e, on, network, options}, options.faults);
}

/// Simulates a plan on a piece of hardware. Its memory is the limit if the options give none. On a torus the mesh is placed row-major. The
/// record names the hardware and all assumptions.
inline run_record dry_run(const plan_view& plan, const extents& e, const hardware& on, const dry_run_options& options = {}) {
  return detail::run_once(plan, e, {plan, e, on, options}, options.faults);
}

/// Simulates a plan with the mesh placed on the torus of the hardware by `mesh`. Throws if `mesh` has another torus, or if the extents
/// differ from those of the plan. For any machine without hardware, pass a torus_mesh as the network of a dry run.
inline run_record dry_run(const plan_view& plan, const extents& e, const hardware& on, const torus_mesh& mesh,
                          const dry_run_options& options = {}) {
  return detail::run_once(plan, e, {plan, e, on, mesh, options}, options.faults);
}

}}  // namespace gshard::v0
