// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/device_group.hpp>
#include <gshard/comm/error.hpp>
#include <gshard/comm/simulator/run_record.hpp>
#include <gshard/pass/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 {

/// What makes a device unlike the others.
struct device_fault {
  int device = 0;
  double slower = 1;  ///< it computes so many times as long
  double dies_at = std::numeric_limits<double>::infinity();
};

/// What goes wrong in a simulated run.
struct device_faults {
  std::vector<device_fault> devices;
  double jitter = 0;  ///< every step of a device takes up to this share longer, by chance
  std::uint64_t seed = 1;
  double timeout = 10;  ///< seconds after which those give up who wait for a dead device

  bool none() const { return devices.empty() && jitter == 0; }
};

namespace detail {

/// "512 all_to_all at moe.hpp:38"
inline std::string step_text(const plan_view& plan, std::int32_t i) {
  const node& n = plan.steps[std::size_t(i)];
  std::string s = std::to_string(i) + " " + std::string(name(n.kind));
  if (!n.place.file) return s;
  std::string_view file(n.place.file);
  if (const std::size_t slash = file.rfind('/'); slash != file.npos) file.remove_prefix(slash + 1);
  return s + " at " + std::string(file) + ":" + std::to_string(n.place.line) + (n.place.gradient ? " (its gradient)" : "");
}

/// The clocks of all devices of a mesh, or of one that stands for all while nothing tells them apart.
class device_clocks {
 public:
  static constexpr std::size_t most_tracks = 8;

  device_clocks(const plan_view& plan, const std::vector<int>& extents, const device_faults& faults, bool overlap)
      : plan_(plan), extents_(extents), faults_(faults), overlap_(overlap), devices_(device_count(extents)) {
    const std::size_t simulated = faults.none() ? 1 : std::size_t(devices_);
    compute_.resize(simulated);
    network_.resize(simulated);
    start_.resize(simulated);
    slower_.assign(simulated, 1.0);
    dies_at_.assign(simulated, std::numeric_limits<double>::infinity());
    slot_.assign(plan.values.size(), -1);
    for (const device_fault& f : faults.devices) {
      if (f.device < 0 || f.device >= devices_) throw error("a fault names device " + std::to_string(f.device) + ", but there are " + std::to_string(devices_));
      slower_[std::size_t(f.device)] = f.slower;
      dies_at_[std::size_t(f.device)] = f.dies_at;
      record(f.device);
    }
    for (int d = 0; d < int(simulated) && tracks_.size() < most_tracks; ++d) record(d);
    std::sort(tracks_.begin(), tracks_.end(), [](const device_track& a, const device_track& b) { return a.devices < b.devices; });
    idle_since_.resize(tracks_.size());
    if (simulated == 1)
      for (int d = 1; d < devices_; ++d) tracks_[0].devices.push_back(d);
  }

  /// Runs steps in this order, of which each takes so long alone; `bytes`: what lives in each.
  std::vector<device_track> run(const std::vector<step_record>& steps, const std::vector<std::int64_t>& bytes) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const node& n = plan_.steps[std::size_t(steps[i].step)];
      std::fill(start_.begin(), start_.end(), 0.0);
      for (int k = 0; k < n.inputs; ++k) wait_for(n.input(k));
      const bool moves = traits(n.kind).collective && steps[i].bytes_received > 0;
      if (moves) run_together(i, steps[i], n);
      else run_alone(i, steps[i], n);
      for (device_track& t : tracks_)
        if (i == 0 || bytes[i] != bytes[i - 1]) t.memory.push_back({compute_[std::size_t(t.devices[0])], bytes[i]});
    }
    return tracks_;
  }
  /// When the last device is done.
  double last() const {
    return std::max(*std::max_element(compute_.begin(), compute_.end()), *std::max_element(network_.begin(), network_.end()));
  }

 private:
  const plan_view& plan_;
  const std::vector<int>& extents_;
  const device_faults& faults_;
  bool overlap_;
  int devices_;
  std::vector<double> compute_, network_, start_, slower_, dies_at_;  // by simulated device
  std::vector<std::int32_t> slot_;                                    // by value, a root: row of ready_, or -1: it is there
  std::vector<std::vector<double>> ready_;                            // results of collectives that go on
  std::vector<std::int32_t> free_;
  std::vector<device_track> tracks_;
  std::vector<double> idle_since_;  // by track
  std::map<std::uint32_t, std::vector<int>> groups_;                  // by axes: the first device of each device's group

  std::size_t root(std::int32_t v) const { return std::size_t(plan_.lifetimes[std::size_t(v)].root); }

  void record(int device) {
    for (const device_track& t : tracks_)
      if (t.devices[0] == device) return;
    tracks_.emplace_back().devices.push_back(device);
  }
  void wait_for(std::int32_t v) {
    const std::int32_t row = slot_[root(v)];
    if (row < 0) return;
    const std::vector<double>& ready = ready_[std::size_t(row)];
    bool all_there = true;
    for (std::size_t d = 0; d < start_.size(); ++d) {
      start_[d] = std::max(start_[d], ready[d]);
      all_there = all_there && ready[d] <= compute_[d];
    }
    if (!all_there) return;
    free_.push_back(row);
    slot_[root(v)] = -1;
  }
  /// What a step takes on a device, a number in [1, 1 + jitter) times as long.
  double chance(std::size_t device, std::size_t position) const {
    if (faults_.jitter <= 0) return 1;
    std::uint64_t x = faults_.seed * 0x9E3779B97F4A7C15u + device * 0xBF58476D1CE4E5B9u + position * 0x94D049BB133111EBu;
    x ^= x >> 30, x *= 0xBF58476D1CE4E5B9u, x ^= x >> 27, x *= 0x94D049BB133111EBu, x ^= x >> 31;
    return 1 + faults_.jitter * double(x >> 11) / double(std::uint64_t(1) << 53);
  }

  void run_alone(std::size_t position, const step_record& step, const node& n) {
    for (int o = 0; o < n.outputs; ++o) release(n.output(o));
    if (step.seconds <= 0) return;
    for (std::size_t d = 0; d < compute_.size(); ++d) {
      start_[d] = std::max(start_[d], compute_[d]);
      compute_[d] = start_[d] + step.seconds * slower_[d] * chance(d, position);
    }
    note(step, activity::compute, compute_, false);
  }
  void run_together(std::size_t, const step_record& step, const node& n) {
    const auto axes = std::uint32_t(n.attr.integer[0]);
    const bool aside = overlap_ && n.kind != op::looped_einsum;
    for (std::size_t d = 0; d < compute_.size(); ++d) start_[d] = std::max({start_[d], compute_[d], aside ? network_[d] : 0.0});
    if (compute_.size() > 1) {
      const std::vector<int>& first = groups(axes);
      check_alive(step, n, first);
      for (std::size_t d = 0; d < first.size(); ++d) start_[std::size_t(first[d])] = std::max(start_[std::size_t(first[d])], start_[d]);
      for (std::size_t d = 0; d < first.size(); ++d) start_[d] = start_[std::size_t(first[d])];
    }
    std::vector<double>& end = aside ? network_ : compute_;
    for (std::size_t d = 0; d < end.size(); ++d) end[d] = start_[d] + step.seconds;
    for (int o = 0; o < n.outputs; ++o) {
      release(n.output(o));
      if (!aside) continue;
      if (free_.empty()) free_.push_back(std::int32_t(ready_.size())), ready_.emplace_back();
      slot_[root(n.output(o))] = free_.back();
      ready_[std::size_t(free_.back())] = network_;
      free_.pop_back();
    }
    note(step, activity::collective, end, aside);
  }
  void release(std::int32_t v) {
    std::int32_t& row = slot_[root(v)];
    if (row >= 0) free_.push_back(row);
    row = -1;
  }

  /// Collectives that go on aside leave no gap where nothing is done.
  void note(const step_record& step, activity what, const std::vector<double>& ends, bool aside) {
    for (std::size_t k = 0; k < tracks_.size(); ++k) {
      device_track& t = tracks_[k];
      const auto device = std::size_t(t.devices[0]);
      const double begin = start_[device], end = ends[device];
      if (!aside && begin > idle_since_[k]) {
        t.spans.push_back({step.step, activity::wait, idle_since_[k], begin});
        t.wait += begin - idle_since_[k];
      }
      t.spans.push_back({step.step, what, begin, end});
      (what == activity::collective ? t.communicate : t.compute) += end - begin;
      if (!aside) idle_since_[k] = end;
    }
  }

  const std::vector<int>& groups(std::uint32_t axes) {
    std::vector<int>& first = groups_[axes];
    if (first.empty()) {
      first.assign(std::size_t(devices_), -1);
      for (int d = 0; d < devices_; ++d) {
        if (first[std::size_t(d)] >= 0) continue;
        const device_group g(extents_, axes, d);
        for (int m = 0; m < g.size(); ++m) first[std::size_t(g.device(m))] = d;
      }
    }
    return first;
  }
  void check_alive(const step_record& step, const node&, const std::vector<int>& first) const {
    for (const device_fault& f : faults_.devices) {
      const auto dead = std::size_t(f.device);
      if (start_[dead] < f.dies_at) continue;
      std::string waiting;
      int count = 0;
      double since = 0;
      for (std::size_t d = 0; d < first.size(); ++d) {
        if (first[d] != first[dead] || d == dead || start_[d] >= dies_at_[d]) continue;
        if (++count <= 8) waiting += (count > 1 ? ", " : "") + std::to_string(d);
        since = std::max(since, start_[d]);
      }
      if (count == 0) continue;
      char when[96];
      std::snprintf(when, sizeof when, "died after %g s; at %g s, %g s after the last of them came, ", f.dies_at, since + faults_.timeout, faults_.timeout);
      throw error("step " + step_text(plan_, step.step) + ": device " + std::to_string(f.device) + " " + when + "these gave up waiting for it: " + waiting +
                  (count > 8 ? " and " + std::to_string(count - 8) + " others" : ""));
    }
  }
};

}  // namespace detail

}}  // namespace gshard::v0
