// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The while loops of a running plan: the next step, and the seed of every iteration.

#include <gshard/core/base/hash.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/plan/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// The loops of a plan, and the current iteration of those that run.
class running_loops {
 public:
  running_loops() = default;
  explicit running_loops(const plan_view& plan) : end_(plan.steps.size()) {
    std::vector<std::size_t> begins;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const int nesting = traits(plan.steps[i].kind).nesting;
      if (nesting > 0) {
        begins.push_back(i);
        if (const auto key = std::size_t(plan.steps[i].attr.key); key >= counts_.size()) counts_.resize(key + 1);
      }
      if (nesting >= 0) continue;
      end_[begins.back()] = i;
      begins.pop_back();
    }
  }

  /// Begins a run, in which no loop runs yet.
  void begin_run() { running_.clear(); }
  /// The number of complete iterations of the innermost loop.
  std::uint64_t iterations() const { return running_.back().number; }

  /// The step to run after step i. In a loop it also sets the seed, so that every iteration draws different random numbers. continues(step)
  /// is called after the steps of a condition.
  template <class Continues>
  std::size_t after(std::size_t i, const node& step, std::uint64_t& seed, Continues continues) {
    const operation& kind = traits(step.kind);
    if (!kind.control) return i + 1;
    if (kind.nesting > 0) {
      running_.push_back({i, 0, seed});
      seed = seed_of(running_.back(), step);
    } else if (kind.nesting < 0) {
      iteration& now = running_.back();
      ++now.number;
      seed = seed_of(now, step);
      return now.begin + 1;
    } else if (!continues(step)) {
      const iteration last = running_.back();
      running_.pop_back();
      seed = last.seed;
      if (!step.attr.reverse) counts_[std::size_t(step.attr.key)] = last.number;
      return end_[last.begin] + 1;
    }
    return i + 1;
  }

 private:
  struct iteration {
    std::size_t begin = 0;
    std::uint64_t number = 0;
    std::uint64_t seed = 0;  // of the code around the loop
  };
  /// The seed of an iteration. A reverse loop has the seeds of the last loop with its key, from the last iteration to the first.
  std::uint64_t seed_of(const iteration& now, const node& step) const {
    const auto key = std::size_t(step.attr.key);
    const std::uint64_t number = step.attr.reverse ? counts_[key] - 1 - now.number : now.number;
    return number == 0 ? now.seed : fnv1a<std::uint64_t>().add(now.seed).add(std::uint64_t(key)).add(number).value();
  }
  std::vector<std::uint64_t> counts_;  // by key: the iterations of the last loop that was not reverse
  std::vector<iteration> running_;  // innermost last
  std::vector<std::size_t> end_;    // by the step that begins a loop
};

}}}  // namespace gshard::v0::detail
