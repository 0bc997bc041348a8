// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/list_view.hpp>
#include <gshard/comm/error.hpp>
#include <gshard/comm/simulator/device_clock.hpp>
#include <gshard/comm/simulator/device_memory.hpp>
#include <gshard/comm/simulator/plan_links.hpp>
#include <gshard/comm/simulator/presets.hpp>
#include <gshard/comm/simulator/recompute.hpp>
#include <gshard/comm/simulator/run_record.hpp>
#include <gshard/comm/simulator/step_cost.hpp>
#include <gshard/pass/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// Which activations are made again for the gradient instead of being kept.
enum class recompute : std::uint8_t {
  never,
  when_needed,  ///< those of as few layers as fit into the memory of a device, the first ones
  always,
};

struct dry_run_options {
  efficiency share;
  std::int64_t capacity = 0;  ///< bytes of memory of a device; 0: as much as it needs
  recompute activations = recompute::when_needed;
  /// Collectives go on while steps compute that do not need their results.
  bool overlap = false;
  /// What does not fit is recorded, not thrown.
  bool report_only = false;
  bool links = false;               ///< record what each link carries; for some thousand devices that takes a tenth of a second
  std::size_t largest_tensors = 8;  ///< that are named at the peak of memory
  gshard::faults faults;
};

namespace detail {

inline std::string amount_text(std::int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", double(bytes) / double(std::int64_t(1) << 30));
  return text;
}
/// "encoder.0.moe.wi" or "the result of einsum at moe.hpp:12".
inline std::string tensor_text(const plan_view& plan, std::int32_t v) {
  const value& t = plan.at(v);
  if (t.parameter >= 0) return std::string(plan.parameters[std::size_t(t.parameter)].name.view());
  for (const port& p : plan.inputs)
    if (p.value == v) return "the input " + std::string(p.name.view());
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    for (int o = 0; o < plan.steps[i].outputs; ++o)
      if (plan.steps[i].output(o) == v) return "the result of " + step_text(plan, std::int32_t(i));
  return "%" + std::to_string(v);
}

inline step_schedule schedule_for(const recomputation& layers, const device_memory& memory, recompute how, std::int64_t capacity) {
  if (how == recompute::always) return layers.schedule(layers.layers());
  step_schedule all = layers.schedule(0);
  const auto fits = [&](const step_schedule& order) { return memory.peak(order) <= capacity; };
  if (how == recompute::never || capacity == 0 || layers.layers() == 0 || fits(all)) return all;
  std::int32_t few = 0, enough = layers.layers();  // the first few do not suffice
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
  s += "it holds " + amount_text(m.capacity) + " and needs " + amount_text(asked) + " there, at most " + amount_text(m.peak);
  s += ". The largest tensors that live then: ";
  for (std::size_t i = 0; i < m.largest.size(); ++i)
    s += (i ? ", " : "") + tensor_text(plan, m.largest[i].value) + " (" + amount_text(m.largest[i].bytes) + ")";
  return s;
}

}  // namespace detail

/// Runs a plan without numbers: when each step of it would run on devices like `on` between which `network` moves data, and what they hold
/// meanwhile. What devices do alike is simulated once, so that the price does not grow with their number, unless faults tell them apart;
/// then the record has a track for each of at most eight classes of devices to which the same happens. Of a loop whose turns are counted
/// at run time one turn is run.
/// Throws: gshard::error where a torus is not laid out for the mesh of the plan, where the memory of a device is too small, with the step
/// and the largest tensors, and where a device is dead, with those that wait for it.
template <network Network>
run_record dry_run(const plan_view& plan, const extents& e, const machine& on, const Network& network,
                   const dry_run_options& options = {}) {
  run_record r;
  for (int a = 0; a < plan.mesh.rank(); ++a) {
    r.axes.emplace_back(plan.mesh.name(a));
    r.extents.push_back(e.axis(a));
  }
  if constexpr (requires { network.fits(list_view<int>(r.extents)); })
    if (!network.fits(list_view<int>(r.extents)))
      throw error("dry run: the torus is laid out for another mesh than the plan's, or not for each of its devices once");
  const device_memory memory(plan, e);
  const step_schedule order = detail::schedule_for(recomputation(plan), memory, options.activations, options.capacity);
  r.memory = memory.record(order, e, options.capacity, options.largest_tensors);
  if (options.capacity > 0 && r.memory.peak > options.capacity && !options.report_only) throw error(detail::overrun_text(plan, r.memory));

  const std::vector<step_record> costs = costs_of(plan, e, on, network, options.share);
  r.steps.reserve(order.size());
  for (const scheduled_step& s : order) {
    r.steps.push_back(costs[std::size_t(s.step)]);
    r.steps.back().recomputed = s.recomputed;
  }
  detail::clock_times times =
      detail::run_clocks(plan, r.extents, options.faults, options.overlap, r.steps, memory.after(order));
  r.tracks = std::move(times.tracks);
  r.seconds = times.seconds;
  for (const step_record& s : r.steps) r.parts[std::size_t(s.part)] += s.seconds;
  return r;
}

namespace detail {
inline std::string percent_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %%", 100 * share);
  return text;
}
}  // namespace detail

/// The same on a piece of hardware, whose memory is the limit if the options name none, a torus with the mesh laid over it row-major. The
/// record says what hardware that is, and all that was assumed.
inline run_record dry_run(const plan_view& plan, const extents& e, hardware on, dry_run_options options = {}) {
  on.topology.all_to_all_efficiency *= options.share.all_to_all;
  if (options.capacity == 0) options.capacity = on.memory;
  std::vector<int> mesh;
  for (int a = 0; a < plan.mesh.rank(); ++a) mesh.push_back(e.axis(a));
  if (!on.is_torus() && !options.faults.links.empty()) throw error("faults: " + on.name + " has no links between chips");
  run_record r = on.is_torus() ? dry_run(plan, e, on.device, faulty_torus(on.lay(mesh), options.faults), options)
                               : dry_run(plan, e, on.device, on.device, options);
  if (on.is_torus() && options.links) r.links = plan_links(on.lay(mesh), options.faults).loads(plan, r.steps);
  r.network = on.name;
  r.source = on.of.source;
  if (on.is_torus()) r.chips = on.chips;
  r.cores_per_chip = on.of.cores;
  r.assumptions = assumptions(on);
  const efficiency& share = options.share;
  r.assumptions.push_back("products run at " + detail::percent_text(share.products) + " of the peak, those of many small matrices (an extent below " +
                          std::to_string(share.small_product) + ") at " + detail::percent_text(share.batched_products) + ", all else at " + detail::percent_text(share.memory) +
                          " of the memory's rate; routing goes over its tensors " + std::to_string(int(share.gating_passes)) + " times" +
                          (share.fusion ? "; elementwise operations are fused" : ""));
  r.assumptions.push_back(options.overlap ? "collectives go on while steps compute that do not need them"
                                          : "nothing is computed while a collective is under way");
  int again = 0;
  for (const step_record& s : r.steps) again += s.recomputed;
  if (again > 0) r.assumptions.push_back(std::to_string(again) + " steps of the forward pass are run again for the gradient");
  return r;
}

}}  // namespace gshard::v0
