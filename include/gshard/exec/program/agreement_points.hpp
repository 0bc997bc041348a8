// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The steps of a plan before which the processes agree, so that an error of one process is thrown on all.

#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/plan/plan.hpp>

#include <algorithm>
#include <cstddef>

namespace gshard { inline namespace v0 { namespace detail {

/// When the processes agree in a run of a plan. @see executor::run
class agreement_points {
 public:
  std::size_t begin = 0;        ///< The processes agree on the call before this step; the number of steps: at the end.
  std::size_t first_write = 0;  ///< The first step that writes into the storage of a parameter, or the number of steps.

  agreement_points() = default;
  /// `starts_early(i)`: true if asynchronous collectives start before step i.
  template <class StartsEarly>
  agreement_points(const plan_view& plan, StartsEarly starts_early) {
    begin = plan.steps.size();
    first_write = gshard::first_write(plan);
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const op_ref kind = plan.steps[i].kind;
      const bool updates = writes_parameters(plan, plan.steps[i]);
      const bool communicates = traits(kind).collective || traits(kind).nesting > 0 || starts_early(i);
      if (updates || communicates) begin = std::min(begin, i);
      if (i == first_write) {
        ends_with_steps_ = false;
      } else if (!updates && !traits(kind).alias) {
        ends_with_steps_ = true;
      }
    }
    for (const node& step : plan.steps) checks_updates_ = checks_updates_ || step.attr.if_not_finite != not_finite::ignore;
    find_failures(plan, begin);
  }

  /// False if the caller makes the processes agree on the call.
  bool has_first() const { return begin != std::size_t(-1); }
  void without_first(const plan_view& plan) {
    begin = std::size_t(-1);
    find_failures(plan, 0);
  }
  /// True if they agree at the end. `more`: something other than a step may fail after their first agreement.
  bool at_end(bool more) const { return checks_updates_ || (ends_with_steps_ && (may_fail_ || more)); }

 private:
  bool ends_with_steps_ = true;  // steps other than updates come after the first write
  bool may_fail_ = false;        // a step after the first agreement may fail
  bool checks_updates_ = false;  // updates of parameters are checked, and with them the loss

  void find_failures(const plan_view& plan, std::size_t first) {
    may_fail_ = false;
    for (std::size_t i = first; i < plan.steps.size(); ++i) may_fail_ = may_fail_ || may_fail(plan.steps[i].kind);
  }
};

}}}  // namespace gshard::v0::detail
