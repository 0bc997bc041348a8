// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Simulated time of real runs: the times of an executor's steps on given hardware.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/exec/process/callback.hpp>
#include <gshard/exec/program/executor.hpp>
#include <gshard/sim/run/dry_run.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gshard { inline namespace v0 {

/// A clock for real runs. It computes the times that the steps of an executor would have on the devices of a piece of hardware. Each
/// iteration of a loop counts separately. Prices, faults and clocks are those of `dry_run`. Faults change times, never numbers. Every
/// process computes the clocks of all devices, with the same result.
///
/// Each run has its own record, in which all devices begin at 0, because processes synchronize in every run. Steps are in the order of the
/// plan; asynchronous ones are at their own index. Jitter is drawn anew for every run. `options`: `activations` is taken as `never`,
/// because executors keep them.
/// The executor must outlive the clock. The clock also calls the hook that the executor had, and restores it at its end. If there are
/// several clocks, the last one made must end first.
/// Throws `gshard::error`: as `dry_run`, in the constructor. A run in which devices wait for a dead one throws on every process, with the
/// step and the devices. For the parameters after such a run, see executor::run.
/// @see dry_run, executor::hook
class run_clock {
 public:
  run_clock(executor& run, const hardware& on, const dry_run_options& options = {})
      : run_(run), hook_(run.hook), broken_(options.faults), priced_(run.plan(), run.sizes(), on, keeping_activations(options)),
        counted_(run.runs()), under_way_(run.plan().steps.size()),
        row_(run.plan().steps.size()) {
    broken_.check(device_count(priced_.mesh()));
    std::size_t begin = 0;
    step_schedule all;
    for (std::size_t i = 0; i < under_way_.size(); ++i) {
      all.push_back({std::int32_t(i)});
      stretch_.push_back(begin);
      if (const op_ref kind = run.plan().steps[i].kind; traits(kind).control) begin = i + 1;
    }
    priced_.memory(detail::with_iterations(run.plan(), run.sizes(), all, detail::priced_plan::iterations_of_peak));
    run_.hook = [this](const node& step, bool begins) {
      if (hook_) hook_(step, begins);
      const auto i = std::size_t(&step - &run_.plan().steps[0]);
      if (begins) charge(i);
      note_time(i, begins);
    };
  }
  run_clock(const run_clock&) = delete;
  run_clock& operator=(const run_clock&) = delete;
  ~run_clock() { run_.hook = std::move(hook_); }

  /// The record of the last run, with the measured seconds of each step next to the simulated ones. `received`: the bytes that the devices
  /// of this process received in it. `between_nodes`: the bytes among them from other nodes.
  run_record record() const {
    run_record r = priced_.run(order_, broken_);
    if (runs_ > 0) {
      for (std::size_t i = 0; i < measured_.size(); ++i) r.steps[i].measured = measured_[i];
      r.measured_seconds = seconds_between(first_, last_);
      r.received.assign(run_.received_in_run().begin(), run_.received_in_run().end());
      r.between_nodes.assign(run_.between_nodes_in_run().begin(), run_.between_nodes_in_run().end());
    }
    return r;
  }
  /// The seconds of all runs since construction, one after the other.
  double seconds() const { return runs_ == 0 ? 0 : before_ + priced_.run(order_, broken_).seconds; }
  std::int64_t runs() const { return runs_; }

 private:
  executor& run_;
  callback<void(const node&, bool)> hook_;  // of the executor, called as well
  faults broken_;                                // in this run
  detail::priced_plan priced_;
  std::int64_t runs_ = 0, counted_;  // since construction; of the executor
  double before_ = 0;                // seconds of the runs before this one
  step_schedule order_;              // of this run, so far
  std::size_t next_ = 0;             // the next step of the plan
  bool waits_in_vain_ = false, is_first_ = true;
  std::vector<char> under_way_;       // by step: charged, but not done
  std::vector<std::size_t> stretch_;  // by step: the first step after the last control step of a loop

  using clock = std::chrono::steady_clock;
  std::vector<std::size_t> row_;     // by step: the last row that it has in the order of this run
  std::vector<double> measured_;     // by row: seconds of this process
  clock::time_point first_, begun_, last_;  // of the run and of a step

  static double seconds_between(clock::time_point begin, clock::time_point end) {
    return std::chrono::duration<double>(end - begin).count();
  }
  void note_time(std::size_t step, bool begins) {
    const clock::time_point now = clock::now();
    if (waits_in_vain_) return;
    measured_.resize(order_.size());
    if (begins) {
      begun_ = now;
      if (is_first_) first_ = now;
      is_first_ = false;
    } else {
      measured_[row_[step]] += seconds_between(begun_, now);
      last_ = now;
    }
  }
  static dry_run_options keeping_activations(dry_run_options options) {
    options.activations = recompute::never;
    return options;
  }
  void begin_run() {
    before_ = seconds();
    if (runs_++ > 0) ++broken_.seed;
    counted_ = run_.runs();
    order_.clear();
    measured_.clear();
    is_first_ = true;
    next_ = 0;
    waits_in_vain_ = false;
    under_way_.assign(under_way_.size(), 0);
  }
  /// Charges all steps up to this one. Steps before it that did not run yet are asynchronous; their own call comes when they are waited
  /// for.
  void charge(std::size_t step) {
    if (counted_ != run_.runs()) begin_run();
    if (waits_in_vain_) return;
    if (under_way_[step]) {
      under_way_[step] = 0;
      return;
    }
    if (step < next_ || stretch_[step] > next_) next_ = stretch_[step];  // another iteration, or the end of a loop
    for (; next_ <= step; ++next_) {
      waits_in_vain_ = true;
      detail::check_alive(run_.plan(), priced_.mesh(), broken_, priced_.costs()[next_]);
      waits_in_vain_ = false;
      under_way_[next_] = next_ < step;
      row_[next_] = order_.size();
      order_.push_back({std::int32_t(next_)});
    }
  }
};

}}  // namespace gshard::v0
