// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Simulated clocks of the devices of a mesh: computation, collectives, waiting and overlap.

#include <gshard/core/plan/plan.hpp>
#include <gshard/core/schedule/async_schedule.hpp>
#include <gshard/exec/backend/device_group.hpp>
#include <gshard/exec/bind/step_text.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/sim/record/faults.hpp>
#include <gshard/sim/record/run_record.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {

inline bool moves(const plan_view& plan, const step_record& s) {
  return traits(plan.steps[std::size_t(s.step)].kind).collective && s.bytes_received > 0;
}
/// Throws if a step moves data between a dead device and other devices, which wait for it.
inline void check_alive(const plan_view& plan, const std::vector<int>& mesh, const faults& broken, const step_record& s) {
  if (!moves(plan, s)) return;
  for (const int device : broken.dead_devices) {
    const device_group group(mesh, plan.steps[std::size_t(s.step)].attr.axes, device);
    std::vector<int> waiting, dead;
    for (int m = 0; m < group.size(); ++m) (broken.dead(group.device(m)) ? dead : waiting).push_back(group.device(m));
    if (!waiting.empty()) fail_waiting("step " + step_text(plan, s.step), waiting, dead, broken.timeout);
  }
}

/// The clocks of all devices of a mesh, or of one device for all if they do not differ.
class device_clocks {
 public:
  /// `schedule`: by step of the plan, the interval in which it is in flight. `hidden`: the share of overlapped time in which a collective
  /// makes progress.
  device_clocks(const plan_view& plan, const std::vector<int>& extents, const gshard::faults& faults, list_view<async_interval> schedule,
                double hidden = 1)
      : plan_(plan), extents_(extents), faults_(faults), schedule_(schedule), devices_(device_count(extents)), hidden_(hidden) {
    faults.check(devices_);
    const std::size_t simulated = faults.tells_devices_apart() ? std::size_t(devices_) : 1;
    compute_.resize(simulated);
    network_.resize(simulated);
    start_.resize(simulated);
    histories_.resize(simulated);
    starting_.resize(plan.steps.size());
    ending_.resize(plan.steps.size() + 1);
    begun_.resize(plan.steps.size());
    done_.resize(plan.steps.size());
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      if (!is_early(std::int32_t(i))) continue;
      starting_[std::size_t(schedule[i].start)].push_back(std::int32_t(i));
      ending_[std::size_t(schedule[i].finish)].push_back(std::int32_t(i));
    }
    for (int d = 0; d < int(simulated); ++d) compute_[std::size_t(d)] = faults.delay(d);
  }

  /// Records the events of the first device of each class.
  void record(const std::vector<std::vector<int>>& classes) {
    tracks_.clear();
    for (const std::vector<int>& devices : classes) tracks_.emplace_back().devices = devices;
    idle_since_.assign(tracks_.size(), 0.0);
  }
  /// After a run: the classes of devices with the same times, ordered by their first device.
  std::vector<std::vector<int>> classes() const {
    std::vector<std::vector<int>> all;
    std::map<std::uint64_t, std::size_t> rows;
    for (int d = 0; d < devices_; ++d) {
      const auto [at, is_new] = rows.try_emplace(histories_[compute_.size() > 1 ? std::size_t(d) : 0], all.size());
      if (is_new) all.emplace_back();
      all[at->second].push_back(d);
    }
    return all;
  }

  /// Runs steps in this order, each with the time that it takes alone. `bytes`: memory in use at each step. Asynchronous steps start and
  /// end as in the executor. Steps that the dry run recomputes are synchronous.
  std::vector<device_track> run(const std::vector<step_record>& steps, const std::vector<std::int64_t>& bytes) {
    steps_ = steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::int32_t step = steps[i].step;
      if (!is_extra(i)) {
        for (const std::int32_t k : ending_[std::size_t(step)]) wait_for(k);
        for (const std::int32_t k : starting_[std::size_t(step)])
          if (const std::size_t row = next_row_of(k, i); row < steps.size()) run_together(row, true);
      }
      if (is_extra(i) || !is_early(step)) run_row(i);
      for (device_track& t : tracks_)
        if (i == 0 || bytes[i] != bytes[i - 1]) t.memory.push_back({compute_[std::size_t(t.devices[0])], bytes[i]});
    }
    for (const std::int32_t k : ending_.back()) wait_for(k);
    for (device_track& t : tracks_)
      std::stable_sort(t.spans.begin(), t.spans.end(), [](const time_span& a, const time_span& b) { return a.begin < b.begin; });
    return tracks_;
  }
  /// The time at which the last device is done.
  double last() const {
    return std::max(*std::max_element(compute_.begin(), compute_.end()), *std::max_element(network_.begin(), network_.end()));
  }

 private:
  plan_view plan_;
  const std::vector<int>& extents_;
  const gshard::faults& faults_;
  list_view<async_interval> schedule_;
  int devices_;
  double hidden_;
  list_view<step_record> steps_;                   // of this run
  std::vector<double> compute_, network_, start_;  // by simulated device
  std::vector<double> slowest_;                    // the slowness of its group in a collective
  std::vector<std::uint64_t> histories_;           // by simulated device: a hash of its times
  std::vector<std::vector<std::int32_t>> starting_, ending_;  // by step of the plan: collectives that start, or end, before it
  std::vector<std::vector<double>> begun_, done_;             // by asynchronous step of the plan, by simulated device
  std::vector<device_track> tracks_;
  std::vector<double> idle_since_;                    // by track
  std::map<std::uint32_t, std::vector<int>> groups_;  // by axes: the first device of each device's group

  /// Updates the hash that distinguishes devices with different times.
  void remember(std::size_t device, double time) {
    histories_[device] = (histories_[device] ^ std::bit_cast<std::uint64_t>(time)) * 0x100000001b3u;  // as in FNV-1a
  }
  bool is_early(std::int32_t i) const { return schedule_[std::size_t(i)] != async_interval{i, i + 1}; }

  /// True if the plan does not have this run of a step: the dry run recomputes it.
  bool is_extra(std::size_t row) const {
    return steps_[row].recomputed && !plan_.steps[std::size_t(steps_[row].step)].place.recomputed;
  }
  /// The first row from `row` on that runs a step and is not recomputed by the dry run; the number of rows if there is none.
  std::size_t next_row_of(std::int32_t step, std::size_t row) const {
    while (row < steps_.size() && (steps_[row].step != step || is_extra(row))) ++row;
    return row;
  }
  void run_row(std::size_t row) {
    if (moves(plan_, steps_[row])) run_together(row, false);
    else run_alone(row);
  }
  void wait_for(std::int32_t step) {
    const std::vector<double>& done = done_[std::size_t(step)];
    for (std::size_t d = 0; d < done.size(); ++d) {
      const double beside = std::min(compute_[d], done[d]) - begun_[std::size_t(step)][d];
      const double late = (1 - hidden_) * std::max(beside, 0.0);
      network_[d] += late;
      compute_[d] = std::max(compute_[d], done[d] + late);
    }
    done_[std::size_t(step)].clear();
  }
  void run_alone(std::size_t row) {
    const step_record& step = steps_[row];
    if (step.seconds <= 0) return;
    start_ = compute_;
    for (std::size_t d = 0; d < compute_.size(); ++d) {
      compute_[d] = start_[d] + step.seconds * (compute_.size() > 1 ? faults_.slowness(int(d), row) : 1);
      remember(d, compute_[d]);
    }
    note(row, activity::compute, compute_, false);
  }
  /// A collective is as slow as the slowest device of its group. `aside`: it is asynchronous, while other steps run.
  void run_together(std::size_t row, bool aside) {
    const step_record& step = steps_[row];
    start_ = compute_;
    for (std::size_t d = 0; d < compute_.size(); ++d) start_[d] = std::max(start_[d], network_[d]);
    check_alive(plan_, extents_, faults_, step);
    slowest_.assign(compute_.size(), 1.0);
    if (compute_.size() > 1) {
      const std::vector<int>& first = groups(plan_.steps[std::size_t(step.step)].attr.axes);
      slowest_.assign(compute_.size(), 0.0);
      for (std::size_t d = 0; d < first.size(); ++d) {
        const auto leader = std::size_t(first[d]);
        start_[leader] = std::max(start_[leader], start_[d]);
        slowest_[leader] = std::max(slowest_[leader], faults_.slowness(int(d), row));
      }
      for (std::size_t d = 0; d < first.size(); ++d) {
        start_[d] = start_[std::size_t(first[d])];
        slowest_[d] = slowest_[std::size_t(first[d])];
      }
    }
    for (std::size_t d = 0; d < network_.size(); ++d) {
      network_[d] = start_[d] + step.seconds * slowest_[d];
      remember(d, network_[d]);
    }
    if (aside) begun_[std::size_t(step.step)] = start_;
    if (aside) done_[std::size_t(step.step)] = network_;
    else compute_ = network_;
    note(row, activity::collective, network_, aside);
  }

  /// Adds a span to each track, and the wait before it. Asynchronous collectives do not count as waits.
  void note(std::size_t row, activity what, const std::vector<double>& ends, bool aside) {
    for (std::size_t k = 0; k < tracks_.size(); ++k) {
      device_track& t = tracks_[k];
      const auto device = std::size_t(t.devices[0]);
      const double begin = start_[device], end = ends[device];
      if (!aside && begin > idle_since_[k]) {
        t.spans.push_back({std::int32_t(row), activity::wait, idle_since_[k], begin});
        t.wait += begin - idle_since_[k];
      }
      t.spans.push_back({std::int32_t(row), what, begin, end});
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
};

/// The tracks of a run, and the time at which the last device is done.
struct clock_times {
  std::vector<device_track> tracks;
  double seconds = 0;
};
/// Runs steps on all devices. If there are more than `most` classes of devices, records only `most`, stragglers first.
inline clock_times run_clocks(const plan_view& plan, const std::vector<int>& extents, const faults& broken,
                              list_view<async_interval> schedule, const std::vector<step_record>& steps,
                              const std::vector<std::int64_t>& bytes, std::size_t most = 8, double hidden = 1) {
  device_clocks first(plan, extents, broken, schedule, hidden);
  if (broken.tells_devices_apart()) first.run(steps, bytes);
  std::vector<std::vector<int>> classes = first.classes();
  const auto is_slow = [&](const std::vector<int>& devices) {
    return std::any_of(broken.stragglers.begin(), broken.stragglers.end(), [&](const straggler& s) { return s.device == devices[0]; });
  };
  if (classes.size() > most) {
    std::stable_partition(classes.begin(), classes.end(), is_slow);
    classes.resize(most);
    std::sort(classes.begin(), classes.end());
  }
  device_clocks clocks(plan, extents, broken, schedule, hidden);
  clocks.record(classes);
  clock_times t;
  t.tracks = clocks.run(steps, bytes);
  t.seconds = clocks.last();
  return t;
}

}  // namespace detail

}}  // namespace gshard::v0
