// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Checks of a run for NaN and infinities: the first number that is not finite, and its description.

#include <gshard/core/base/compiled.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/bind/bound_plan.hpp>
#include <gshard/exec/bind/shards.hpp>
#include <gshard/exec/kernel/view.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/exec/tensor/cluster.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/core/plan/plan.hpp>
#include <gshard/exec/kernel/element.hpp>
#include <gshard/exec/kernel/element_text.hpp>
#include <gshard/exec/kernel/finite.hpp>
#endif

namespace gshard { inline namespace v0 { namespace detail {

/// The global index of element i of a shard: "[2,5]".
std::string global_index_text(const kernel::placement& at, std::int64_t i);

/// Collects the findings of the checks of one run on this process. Kernels of several devices and threads report to it. The run goes on. At
/// their next agreement the processes agree on the findings, and all throw the same error.
class finite_checks {
 public:
  /// Begins a run.
  void begin(std::uint32_t step) {
    step_ = step;
    if (!text_.empty()) text_.clear();
  }
  /// The step of the plan whose kernels run. The first of several findings is the one with the smallest place, device and element.
  std::size_t place = 0;

  /// Reports element i of a shard: "the loss is nan", "parameter "w": element [2,5] is inf". `element`: its address.
  void report(const std::string& what, dtype type, const void* element, const kernel::placement& at, std::int64_t i, int device);
  bool found() const { return !text_.empty(); }
  /// A problem for `backend::agree`, or empty.
  process_error problem() const { return found() ? process_error::not_finite(text_, step_, std::get<0>(first_)) : process_error(); }

 private:
  std::mutex mutex_;
  std::uint32_t step_ = 0;
  std::tuple<std::size_t, int, std::int64_t> first_;
  std::string text_;
};

/// A tensor that is checked, and its name for errors.
struct named_value {
  std::string name;
  const bound_value* value;
};

/// Throws `not_finite_error`, on every process, if an element of these tensors is not finite. Collective: all processes pass tensors of the
/// same names and layouts. `step`: the step that the error names.
/// Communicates: one small message per process.
void check_finite_values(const any_cluster& cluster, std::span<const named_value> tensors, std::uint32_t step);

/// True if a step is an update of an optimizer, and is skipped.
bool skips_updates(const node& step, const bound_plan& bound);

/// Reports losses among the outputs that are not finite.
void check_losses(const bound_plan& bound, finite_checks& checks);

#if GSHARD_HAS_BODIES

GSHARD_INLINE std::string global_index_text(const kernel::placement& at, std::int64_t i) {
  std::vector<std::int64_t> index(std::size_t(at.rank));
  for (std::size_t d = index.size(); d-- > 0; i /= at.extent[d]) index[d] = at.offset[d] + i % at.extent[d];
  return extents_text(index);
}

GSHARD_INLINE void finite_checks::report(const std::string& what, dtype type, const void* element, const kernel::placement& at,
                                         std::int64_t i, int device) {
  const std::lock_guard lock(mutex_);
  const std::tuple here{place, device, i};
  if (!text_.empty() && first_ <= here) return;
  first_ = here;
  text_ = what + (at.rank == 0 ? " is " : ": element " + global_index_text(at, i) + " is ") + not_finite_text(type, element) +
          ", in step " + std::to_string(step_) + " on device " + std::to_string(device);
}

GSHARD_INLINE void check_finite_values(const any_cluster& cluster, std::span<const named_value> tensors, std::uint32_t step) {
  const thread_rule::use in_use = cluster.backend().enter();
  finite_checks checks;
  checks.begin(step);
  for (const named_value& t : tensors) {
    for (std::size_t d = 0; d < t.value->data.size(); ++d)
      with_element(t.value->type, [&]<class T>(T*) {
        const T* const x = t.value->as<const T>(d);
        if (const std::int64_t i = kernel::first_not_finite(x, t.value->elements(d)); i >= 0)
          checks.report(t.name, t.value->type, x + i, t.value->places[d], i, cluster.devices()[d]);
      });
    ++checks.place;
  }
  cluster.backend().agree({}, checks.problem());
}

GSHARD_INLINE bool skips_updates(const node& step, const bound_plan& bound) {
  if (step.attr.if_not_finite != not_finite::skip) return false;
  const bound_value& count = bound.value(step.input(step.inputs - 1));
  return with_element(count.type, [&]<class T>(T*) { return !(*count.as<T>(0) == T(0)); });
}

GSHARD_INLINE void check_losses(const bound_plan& bound, finite_checks& checks) {
  checks.place = bound.plan.steps.size();
  for (const port& p : bound.plan.outputs) {
    if (!p.is_loss) continue;
    const bound_value& loss = bound.value(p.value);
    with_element(loss.type, [&]<class T>(T*) {
      for (std::size_t d = 0; d < loss.data.size(); ++d)
        if (const T* const x = loss.as<const T>(d); !kernel::is_finite(*x))
          checks.report("the loss", loss.type, x, loss.places[d], 0, bound.on.devices()[d]);
    });
  }
}

#endif

}}}  // namespace gshard::v0::detail
