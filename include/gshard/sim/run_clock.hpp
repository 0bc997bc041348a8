// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/exec/executor.hpp>
#include <gshard/sim/dry_run.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace gshard { inline namespace v0 {

/// A clock for runs with numbers: says when every step that an executor runs, each turn of a loop by itself, would run on the devices of a
/// piece of hardware, by the same prices, faults and clocks as `dry_run`. Faults change times, never numbers. Every process computes the
/// clocks of all devices, and gets the same.
///
/// Each run has a record of its own, in which all devices begin at 0: processes meet in every run. Steps stand in the order of the plan,
/// those that were started early in their own place. Jitter is drawn anew for every run.
/// `options`: `activations` are kept, as executors keep them.
/// The executor must outlive the clock. A hook that it has is called, too, and is its hook again when the clock ends: of several clocks,
/// the last one made ends first.
/// Throws `gshard::error`: as `dry_run`, when it is made. A run in which devices wait for a dead one throws on every process, with the step
/// and their names; what that leaves of the parameters: see executor::run.
/// @see dry_run, executor::hook
class run_clock {
 public:
  run_clock(executor& run, const hardware& on, const dry_run_options& options = {})
      : run_(run), hook_(run.hook), broken_(options.faults), priced_(run.plan(), run.sizes(), on, keeping_activations(options)),
        counted_(run.runs()), under_way_(run.plan().steps.size()) {
    broken_.check(device_count(priced_.mesh()));
    std::size_t begin = 0;
    step_schedule all;
    for (std::size_t i = 0; i < under_way_.size(); ++i) {
      all.push_back({std::int32_t(i)});
      stretch_.push_back(begin);
      if (const op kind = run.plan().steps[i].kind; traits(kind).control) begin = i + 1;
    }
    priced_.memory(all);
    run_.hook = [this](const node& step, bool begins) {
      if (hook_) hook_(step, begins);
      if (begins) charge(std::size_t(&step - &run_.plan().steps[0]));
    };
  }
  run_clock(const run_clock&) = delete;
  run_clock& operator=(const run_clock&) = delete;
  ~run_clock() { run_.hook = std::move(hook_); }

  /// Of the last run; `received` are the bytes that the devices of this process received in it.
  run_record record() const {
    run_record r = priced_.run(order_, broken_);
    if (runs_ > 0) r.received.assign(run_.received_in_run().begin(), run_.received_in_run().end());
    return r;
  }
  /// Of all runs since it was made, one after the other.
  double seconds() const { return runs_ == 0 ? 0 : before_ + priced_.run(order_, broken_).seconds; }
  std::int64_t runs() const { return runs_; }

 private:
  executor& run_;
  std::function<void(const node&, bool)> hook_;  // that was there
  faults broken_;                                // in this run
  detail::priced_plan priced_;
  std::int64_t runs_ = 0, counted_;  // since it was made; of the executor
  double before_ = 0;                // seconds of the runs before this one
  step_schedule order_;              // of this run, so far
  std::size_t next_ = 0;             // the step of the plan that follows
  bool waits_in_vain_ = false;
  std::vector<char> under_way_;       // by step: it is charged, and not done
  std::vector<std::size_t> stretch_;  // by step: the first of those between which no turn of a loop begins or ends

  static dry_run_options keeping_activations(dry_run_options options) {
    options.activations = recompute::never;
    return options;
  }
  void begin_run() {
    before_ = seconds();
    if (runs_++ > 0) ++broken_.seed;
    counted_ = run_.runs();
    order_.clear();
    next_ = 0;
    waits_in_vain_ = false;
    under_way_.assign(under_way_.size(), 0);
  }
  /// Steps between this one and the last are under way: their turn to be called comes when they are waited for.
  void charge(std::size_t step) {
    if (counted_ != run_.runs()) begin_run();
    if (waits_in_vain_) return;
    if (under_way_[step]) {
      under_way_[step] = 0;
      return;
    }
    if (step < next_ || stretch_[step] > next_) next_ = stretch_[step];  // another turn, or the end of a loop
    for (; next_ <= step; ++next_) {
      waits_in_vain_ = true;
      detail::check_alive(run_.plan(), priced_.mesh(), broken_, priced_.costs()[next_]);
      waits_in_vain_ = false;
      under_way_[next_] = next_ < step;
      order_.push_back({std::int32_t(next_)});
    }
  }
};

}}  // namespace gshard::v0
