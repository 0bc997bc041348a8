// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Plans of one program for different extents of a dim, with the extents at which they change.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/ir/dim.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/core/program/program_options.hpp>
#include <gshard/exec/program/replan.hpp>
#include <gshard/exec/tensor/cluster.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/core/cost/step_time.hpp>
#include <gshard/exec/process/diagnostic.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/exec/program/assumed_extents.hpp>

#include <cstddef>
#include <cstdio>
#include <utility>
#endif

namespace gshard { inline namespace v0 {

struct machine;  // core/cost/step_time.hpp, which executables do not need

/// Plans of one program for different extents of a dim, such as batches of many sizes. An executable takes the one whose price is the least
/// at its extents. Between two sizes, prices are assumed to cross once. All plans have the inputs, outputs and parameters of the program's
/// plan, so they share tensors and stores. They are for the cluster and the other extents with which they were made.
///
///     const gs::guarded_plan plans = gs::guard<serve>(cluster, {{'M', 512}}, 'B', {1, 4096});
///     gs::executable<serve> run(plans, cluster, {{'B', 16}, {'M', 512}});
///
/// @see guard, replan, plan_report
class guarded_plan {
 public:
  struct alternative {
    std::int64_t from = 0;      ///< It runs from this extent on, up to the next alternative.
    std::int64_t made_for = 0;  ///< The extent for which it was planned.
    std::shared_ptr<const plan_tables> plan{};
  };

  /// `traced`: the program before any pass. `like`: its plan, which must outlive this object. `others`: the extents of all other dims.
  /// `priced_on`: the machine whose times decide, or null for `machine{}`. `owner` keeps `like`, if it is not constant.
  guarded_plan(const graph& traced, const plan_view& like, const any_cluster& on, const dims& others, char letter,
               std::span<const std::int64_t> made_for, const compile_options& options, const machine* priced_on = nullptr,
               std::shared_ptr<const void> owner = nullptr);

  char letter() const { return letter_; }
  /// At least one. The first one runs from extent 0 on. Plans that are nowhere the fastest ones are left out.
  std::span<const alternative> alternatives() const { return alternatives_; }
  /// The alternative that runs at this extent.
  const alternative& at(std::int64_t extent) const;
  /// The predicted seconds of a run of an alternative at an extent.
  double seconds(const alternative& a, std::int64_t extent) const;
  /// The extents at which the alternatives change, with the time and the received bytes of each where it begins.
  std::string text() const;

  /// True if these are plans of the program with this plan.
  bool is_of(const plan_view& plan) const { return plan.steps.data() == of_; }

 private:
  std::shared_ptr<const void> owner_;
  const void* of_;
  dims others_;
  char letter_;
  std::shared_ptr<const machine> machine_;
  std::vector<alternative> alternatives_;

  extents sizes(const plan_view& plan, std::int64_t extent) const;
  /// The extent at which the second alternative becomes faster than the first, which is faster where it was made.
  std::int64_t crossing(const alternative& first, const alternative& second) const;
};

namespace detail {
/// The source of an executable's plan, if that is not the program.
struct plan_source {
  const guarded_plan* guarded = nullptr;  ///< Null: it plans again.

  plan_source(replan_t) {}
  plan_source(const guarded_plan& plans) : guarded(&plans) {}
};
}  // namespace detail

/// guard<program>(cluster, {{'M', 512}}, 'B', {1, 4096}): plans a program for these extents of B, and finds the extents at which one plan
/// becomes faster than another. `priced_on`: the machine whose times decide, by default `machine{}`.
/// Communicates: nothing. All processes plan alike.
/// Throws `gshard::error`: if the program has no dim B, or another dim has no extent; if the extents do not ascend; if there is no plan for
/// an extent, because the program is `visible` or `strict`.
/// @see guarded_plan
template <class Program>
guarded_plan guard(const any_cluster& on, const dims& others, char letter, std::initializer_list<std::int64_t> made_for,
                   const machine* priced_on = nullptr) {
  const std::span extents(made_for.begin(), made_for.size());
  return {Program::traced(), Program::plan, on, others, letter, extents, Program::options(), priced_on};
}

#if GSHARD_HAS_BODIES

GSHARD_INLINE guarded_plan::guarded_plan(const graph& traced, const plan_view& like, const any_cluster& on, const dims& others, char letter,
                                         std::span<const std::int64_t> made_for, const compile_options& options, const machine* priced_on,
                                         std::shared_ptr<const void> owner)
    : owner_(std::move(owner)),
      of_(like.steps.data()),
      others_(others),
      letter_(letter),
      machine_(std::make_shared<const machine>(priced_on ? *priced_on : machine{})) {
  bool exists = false;
  for (const dim& d : traced.dims) {
    if (d.what != dim::kind::bound) continue;
    exists = exists || d.letter == letter;
    if (d.letter != letter && !others.has(d.letter) && !options.known.has(d.letter))
      throw error("guard: the extent of " + std::string(1, d.letter) + " is not given");
  }
  if (!exists || others.has(letter) || options.known.has(letter))
    throw error("guard: " + std::string(1, letter) + (exists ? " has an extent already" : " is not a dim of the program"));
  if (made_for.empty()) throw error("guard: no extents");
  for (std::size_t i = 0; i < made_for.size(); ++i) {
    const std::int64_t extent = made_for[i];
    if (extent < 1 || (i > 0 && extent <= made_for[i - 1])) throw error("guard: extents must be positive and ascend");
    compile_options how = options;  // the extent stays open
    how.assumed.set(letter, extent);
    if (priced_on) how.start_bytes = start_bytes_of(*priced_on);
    const auto plan = std::make_shared<const plan_tables>(detail::plan_at(traced, like, on, others, how));
    if (plan->problem)
      throw error("guard: there is no plan for " + std::string(1, letter) + "=" + std::to_string(extent) + ": " + describe(plan->problem));
    alternative next{0, extent, plan};
    if (!alternatives_.empty()) {
      const alternative& last = alternatives_.back();
      if (detail::same_steps(*last.plan, *plan) || seconds(next, extent) >= seconds(last, extent)) continue;
    }
    while (!alternatives_.empty()) {
      const alternative& last = alternatives_.back();
      if (seconds(last, last.made_for) <= seconds(next, last.made_for)) break;
      alternatives_.pop_back();  // nowhere the fastest one
    }
    if (!alternatives_.empty()) next.from = crossing(alternatives_.back(), next);
    alternatives_.push_back(std::move(next));
  }
}

GSHARD_INLINE std::int64_t guarded_plan::crossing(const alternative& first, const alternative& second) const {
  std::int64_t slower = first.made_for, faster = second.made_for;
  while (faster - slower > 1) {
    const std::int64_t middle = slower + (faster - slower) / 2;
    (seconds(second, middle) < seconds(first, middle) ? faster : slower) = middle;
  }
  return faster;
}
GSHARD_INLINE extents guarded_plan::sizes(const plan_view& plan, std::int64_t extent) const {
  dims all = others_;
  all.set(letter_, extent);
  return plan.bind(all, {});
}
GSHARD_INLINE double guarded_plan::seconds(const alternative& a, std::int64_t extent) const {
  const plan_view plan = a.plan->view();
  return price(plan, sizes(plan, extent), *machine_).seconds();
}
GSHARD_INLINE const guarded_plan::alternative& guarded_plan::at(std::int64_t extent) const {
  std::size_t i = alternatives_.size() - 1;
  while (i > 0 && extent < alternatives_[i].from) --i;
  return alternatives_[i];
}

GSHARD_INLINE std::string guarded_plan::text() const {
  std::string s;
  for (const alternative& a : alternatives_) {
    const std::int64_t first = a.from > 0 ? a.from : a.made_for;
    const plan_view plan = a.plan->view();
    const extents here = sizes(plan, first);
    char micros[32];
    std::snprintf(micros, sizeof micros, "%.4g", 1e6 * seconds(a, first));
    const bool is_last = &a == &alternatives_.back();
    s += is_last && a.from == 0 ? "any " : "";
    s += letter_;
    if (!is_last) s += " < " + std::to_string((&a + 1)->from);
    else if (a.from > 0) s += " >= " + std::to_string(a.from);
    s += std::string(": ") + micros + " us at " + letter_ + "=" + std::to_string(first) + ", a device receives " +
         std::to_string(plan.bytes_received(here)) + " bytes\n";
    for (const auto& [name, bytes] : detail::received_by_tensor(plan, here)) s += "  " + name + ": " + std::to_string(bytes) + " bytes\n";
  }
  return s;
}

#endif

}}  // namespace gshard::v0
