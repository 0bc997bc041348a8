// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Runs the steps of a bound program.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/bind/finite_checks.hpp>
#include <gshard/exec/bind/run_context.hpp>
#include <gshard/exec/bind/step_errors.hpp>
#include <gshard/exec/collective/async_collectives.hpp>
#include <gshard/exec/collective/overlap_choice.hpp>
#include <gshard/exec/collective/run_traffic.hpp>
#include <gshard/exec/kernel/interludes.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/exec/process/callback.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/exec/program/bound_program.hpp>
#include <gshard/exec/program/check_replicas.hpp>
#include <gshard/exec/program/running_loops.hpp>
#include <gshard/exec/tensor/cluster.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#if !GSHARD_HAS_BODIES
#error "gshard: with gshard::kernels, only its own source includes this header"
#endif

namespace gshard { inline namespace v0 { namespace detail {

/// Runs a bound program. After an error this process goes on with the collectives, so that the others do not wait, and skips other steps.
/// The next agreement throws the error on all processes. @see executor::run
class runner {
 public:
  using step_hook = callback<void(const node&, bool)>;

  explicit runner(bound_program& p) : p_(p) {
    if (on().measures_overlap() && !p_.early.empty()) overlap_.measure();
  }

  /// `problem`: an error of the caller on this process, or empty. `inputs`: the facts about the inputs. `hook`: may be empty, and may
  /// change while it is called.
  void run(const run_context& context, process_error problem, const collective_call& inputs, const step_hook& hook) {
    const async_collectives::guard under_way(p_.early);
    this_run now{context, inputs, hook, !copied_inputs_.empty(), overlaps()};
    begin(now, std::move(problem));
    const auto again = [&](const node& test) { return continues(test); };
    for (std::size_t i = 0; i < p_.steps.size(); i = p_.loops.after(i, p_.plan.steps[i], now.context.seed, again)) {
      agree_before(i, now);
      skipped_ = skipped_ || (problem_.empty() && skips_updates(p_.plan.steps[i], p_.bound));
      if (!p_.early.has(i)) run_step(i, now);
      else if (!now.moves) run_in_turn(p_.early[i], now);
    }
    end(now);
  }

  /// The next run compares the copies of these inputs.
  void compare_inputs(std::uint64_t which) { if (p_.agreements.has_first()) copied_inputs_ = inputs_with_copies(p_.bound, which); }
  bool skipped() const { return skipped_; }
  bool overlaps() const { return overlap_.overlaps() && !p_.early.empty(); }
  bool measures_overlap() const { return overlap_.measures(); }
  std::int64_t runs() const { return runs_; }
  const run_traffic& traffic_in_run() const { return traffic_; }

 private:
  struct this_run {
    run_context context;
    const collective_call& inputs;
    const step_hook& hook;
    bool compares;       // inputs with copies
    bool moves;          // collectives while steps compute
    bool hooks = false;  // a process has a hook
  };
  bound_program& p_;
  overlap_choice overlap_;
  std::vector<named_value> copied_inputs_;  // the inputs with copies that the next run compares
  run_traffic traffic_;                     // of the current run
  std::vector<std::int64_t> step_bytes_;    // received in a step, per held device
  std::int64_t runs_ = 0;
  bool skipped_ = false;  // an optimizer skipped its updates in the last run
  finite_checks finite_;
  process_error problem_;  // the first error on this process

  backend& on() const { return p_.on.backend(); }
  bool last_agreement_is_first() const { return p_.agreements.begin == p_.steps.size(); }
  template <class F>
  void note(const F& f) {
    process_error problem = problem_of(f);
    if (!problem.empty() && problem_.empty()) problem_ = std::move(problem);
  }
  /// Throws if any process has a problem.
  void agree() { on().agree({}, problem()); }
  void agree_on_this(this_run& now) { now.hooks = agree_on_run(p_, now.context, now.inputs, problem(), bool(now.hook)); }
  /// The first error on this process, or the findings of its checks.
  process_error problem() const { return problem_.empty() ? finite_.problem() : problem_; }

  void begin(this_run& now, process_error problem) {
    problem_ = std::move(problem);
    ++runs_;
    traffic_.begin(on());
    p_.loops.begin_run();
    finite_.begin(now.context.step);
    now.context.checks = &finite_;
    skipped_ = false;
    overlap_.begin();
    if (!now.compares) return;
    agree_on_this(now);
    compare_copies(p_.on, copied_inputs_);  // before steps overwrite inputs
    copied_inputs_.clear();
  }
  /// The agreements before a step, and the asynchronous collectives that end or start there.
  void agree_before(std::size_t i, this_run& now) {
    const node& step = p_.plan.steps[i];
    if (wait_watch* const waits = on().waits()) waits->at_step(std::int64_t(i), name(step.kind).data(), step.place.file, step.place.line);
    if (i == p_.agreements.begin) {
      if (now.compares) agree();
      else agree_on_this(now);
      overlap_.begin();
    }
    if (now.moves) move_on(i, now);
    if (i == p_.agreements.first_write && i != p_.agreements.begin) agree();
    finite_.place = i;
  }
  void end(this_run& now) {
    if (now.moves) move_on(p_.steps.size(), now);
    traffic_.end(on());
    if (wait_watch* const waits = on().waits()) waits->at_step(-1, nullptr, nullptr, 0);
    if (problem_.empty()) check_losses(p_.bound, finite_);
    if (last_agreement_is_first() && now.compares) agree();
    else if (last_agreement_is_first()) agree_on_this(now);
    else if (overlap_.measures()) choose_overlap();
    else if (p_.agreements.at_end(now.hooks || !p_.copies.empty())) agree();
    else if (!problem_.empty()) fail_alone();
    for (const auto& [from, to] : p_.copies) p_.value(from).copy_to(p_.value(to).data);
    for (const lent_value* const l : p_.lent_copies) p_.value(l->value).copy_to(l->shards);
  }
  /// Ends a measured run. After the last one, the processes take the choice of the leader.
  void choose_overlap() {
    agree();
    overlap_.end();
    if (overlap_.is_ready()) overlap_.choose(!on().agree({}, {}, on().leader() && !overlap_.pays()));
  }
  /// Throws an error of this process after the last agreement of a run. The next call on the cluster reports it to the others.
  void fail_alone() {
    on().tell_next("the run before this call failed after its last agreement: " + problem_.text);
    problem_.fail();
  }

  /// True if a loop continues: its condition is not 0. On a process with an error the condition is invalid, and replicas may differ by
  /// rounding. Therefore the processes compare their answers. All throw if one has a problem or a different answer.
  bool continues(const node& test) {
    const bound_value& condition = p_.value(test.input(0));
    const auto is_true = [&](auto i) { return with_element(condition.type, [&]<class T>(T*) { return *condition.as<T>(i) != T(0); }); };
    const bool answer = is_true(0u);
    note([&] {
      with_element(condition.type, [&]<class T>(T*) {
        if (const T number = *condition.as<T>(0); number != number) throw error("while_loop: the condition is not a number");
      });
      for (std::size_t d = 1; d < condition.data.size(); ++d)
        if (is_true(d) != answer) throw error("while_loop: devices hold different copies of the condition");
    });
    const auto these = [&] {
      const std::string what = "whether a loop continues after " + std::to_string(p_.loops.iterations()) + " iterations";
      return std::vector<fact>{name_of_run(p_), {what, answer ? "yes" : "no", line_text(test.place)}};
    };
    on().agree({std::uint64_t(answer ? 1 : 2), these}, problem());
    return answer;
  }

  void run_step(std::size_t i, const this_run& now) {
    const node& step = p_.plan.steps[i];
    hooked(step, now, [&] {
      if (traits(step.kind).collective) {
        p_.received.call(step);
        step_bytes_.assign(p_.on.devices().size(), 0);
        note([&] { counted(i, step_bytes_, [&] { advancing(step, [&] { act(i, now.context); }); }); });
      } else if (problem_.empty()) {
        note([&] { with_step(p_.bound, step, [&] { advancing(step, [&] { act(i, now.context); }); }); });
      }
    });
  }
  /// Threads share the devices if there are enough of these; otherwise the kernels. User functions run on one device at a time.
  void act(std::size_t i, const run_context& context) {
    if (collective* const moves = p_.steps[i].moves.get()) {
      moves->start();
      return moves->finish();
    }
    const std::vector<action>& of_devices = p_.steps[i].actions;
    const auto run = [&](std::int64_t begin, std::int64_t end) {
      for (auto d = std::size_t(begin); d < std::size_t(end); ++d)
        if (of_devices[d]) of_devices[d](context);
    };
    const auto n = std::int64_t(of_devices.size());
    if (n < kernel::threads() || traits(p_.plan.steps[i].kind).user_code) run(0, n);
    else kernel::parallel_for(n, 1, run);
  }
  /// Finishes the asynchronous collectives that must be complete before step i, and starts those scheduled before it.
  void move_on(std::size_t i, const this_run& now) {
    for (const async_collectives::step& s : p_.early.ending(i)) finish(s, now);
    for (const async_collectives::step& s : p_.early.starting(i)) start(s);
  }
  void run_in_turn(const async_collectives::step& s, const this_run& now) {
    start(s);
    finish(s, now);
  }
  void start(const async_collectives::step& s) {
    p_.received.call(p_.plan.steps[s.index]);
    s.received->assign(p_.on.devices().size(), 0);
    note([&] { counted(s.index, *s.received, [&] { p_.early.start(s); }); });
  }
  void finish(const async_collectives::step& s, const this_run& now) {
    hooked(p_.plan.steps[s.index], now, [&] { note([&] { counted(s.index, *s.received, [&] { p_.early.finish(s); }); }); });
  }
  /// Calls f(), which computes a step. Collectives in flight that advance in calls do so before f() and between its pieces.
  template <class F>
  void advancing(const node& step, const F& f) {
    const bool loops = is_looped_product(step.kind);
    if (!on().advances_in_calls() || (!loops && (traits(step.kind).collective || !p_.early.in_flight()))) return f();
    auto advance = [this] { p_.early.advance(on()); };
    if (!loops) advance();
    const kernel::use_interludes here(advance);
    f();
  }
  template <class F>
  void hooked(const node& step, const this_run& now, const F& f) {
    if (now.hook) note([&] { now.hook(step, true); });
    f();
    if (now.hook) note([&] { now.hook(step, false); });
  }
  /// Adds the bytes that devices receive during f() to the counts of step i and of the run.
  template <class F>
  void counted(std::size_t i, std::vector<std::int64_t>& in_step, const F& f) {
    const auto [busiest, bytes] = traffic_.count(on(), in_step, f);
    p_.received.add(i, p_.plan.steps[i], busiest, bytes);
  }
};

}}}  // namespace gshard::v0::detail
