// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Runs the steps of a plan on a cluster, after the processes agree that they run the same plan.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/bind/kernel_table.hpp>
#include <gshard/exec/bind/lent_value.hpp>
#include <gshard/exec/bind/run_context.hpp>
#include <gshard/exec/bind/shards.hpp>
#include <gshard/exec/process/callback.hpp>
#include <gshard/exec/process/thread_rule.hpp>
#include <gshard/exec/program/parameters.hpp>
#include <gshard/exec/tensor/cluster.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/exec/program/binder.hpp>
#include <gshard/exec/program/bound_program.hpp>
#include <gshard/exec/program/runner.hpp>

#include <utility>
#endif

namespace gshard { inline namespace v0 {

namespace detail {
struct bound_program;
class runner;

/// What an executable or an eager operation adds to the making of its executor.
struct executor_call {
  process_error problem{};         ///< An error of the caller on this process, or empty.
  std::string_view operation{};    ///< The name of an eager operation, empty for a program of the user.
  std::vector<lent_value> lent{};  ///< Inputs and outputs in the caller's memory, which must stay valid. Runs read and write it directly.
  collective_call operands{};      ///< Facts about the operands of an operation that must be the same on all processes.
  std::shared_ptr<const void> owner{};  ///< Owns the plan, if it is not a constant.
};
}  // namespace detail

/// Runs a plan, step by step, on every device that this process holds. The constructor binds extents, assigns memory and binds every step
/// to its kernel. A run allocates nothing except in backends. The plan must outlive the executor, unless `call.owner` owns it.
///
/// If one process fails, all throw. A process that failed throws its own error; the others throw one that names the failed ranks.
class executor {
 public:
  /// Binds a plan. `kernels`: `kernels_of<Program>` or `all_kernels`. `call`: set by executables. Collective over the cluster.
  /// Communicates: one small message per process; if devices share memory, two, and the addresses of all values.
  /// Throws `gshard::error`, on every process: for a `call.problem`; for a letter without an extent; if the cluster lacks a mesh axis; if
  /// the store is on another cluster; if another program declares a parameter differently; if the processes differ in the call, plan,
  /// function, extents, initial values, seed or store. The store is then unchanged.
  executor(const plan_view& plan, const kernel_table& kernels, const any_cluster& on, const dims& given, parameter_store store,
           detail::executor_call call = {});
  ~executor();
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  const plan_view& plan() const;
  const any_cluster& cluster() const;
  const parameter_store& store() const;
  parameter_store& store();
  /// Extents of the plan's dims and mesh axes.
  const extents& sizes() const;
  /// Bytes per device for the values of a run. Parameters and packing buffers are not included.
  std::int64_t arena_bytes() const;

  const detail::bound_value& value(std::int32_t v) const;
  const detail::bound_value& input(std::size_t i) const { return value(plan().inputs[i].value); }
  const detail::bound_value& output(std::size_t i) const { return value(plan().outputs[i].value); }

  /// A guard for the use of the cluster by the calling thread, as `backend::enter`. On one device without MPI, where several threads may
  /// run programs, it guards this executor.
  detail::thread_rule::use enter() {
    if (backend& b = cluster().backend(); b.threads().is_checked()) return b.enter();
    return detail::thread_rule::use(*rule_);
  }

  /// Takes the threads, the hook and the user of an executor that this one replaces.
  void replace(executor& old) {
    threads = old.threads;
    hook = std::move(old.hook);
    rule_.swap(old.rule_);
  }

  /// Runs all steps. Write the inputs to `input(i)` before every run. `problem`: an error of the inputs on this process, or empty.
  /// `inputs`: the facts about the inputs that must be the same on all processes.
  ///
  /// The processes agree on the call before the first step that communicates or writes a parameter, or at the end if there is none. After
  /// that, a process with an error still runs the collectives, so that the others do not hang. The next agreement reports the error. The
  /// processes agree again before parameters are written. They agree in every iteration of a loop, on whether it continues. They agree at
  /// the end if a later step may fail, an optimizer checks its updates, or a process has a `hook`.
  /// Communicates: the plan's collectives, and one small message per process for every agreement.
  ///
  /// Throws `gshard::error`, on every process: if the processes differ in the call, program, seed, step or `inputs`; for a `problem`; for
  /// an id or label out of range. The parameters are then unchanged, unless the failing step comes after a parameter update in the plan.
  /// An error of a hook is also thrown on every process. After the first update it may leave different parameters on different processes.
  /// An error of a message, of memory or of a function of `map` is reported by the next agreement. If the run has none left, this process
  /// throws it, and the next collective call on the cluster throws it on every process.
  ///
  /// Throws `not_finite_error`, on every process, if a check finds NaN or an infinity: check_finite before parameters are updated, an
  /// optimizer after all updates. @see not_finite
  void run(const run_context& context, process_error problem = {}, const collective_call& inputs = {});

  /// Call this to reuse an executor where other processes may construct a new one. It communicates and throws as the constructor does, so
  /// the calls match.
  void use_again(const collective_call& operands = {});

  /// Declares that the caller makes the processes agree on every run and its inputs. Later runs skip their first agreement.
  void agreed_by_caller();

  /// The next run compares the copies of these inputs before its steps. `which` has a bit per input. If copies differ in a bit, the run
  /// throws `gshard::error` on every process, as `check_replicas` does. `which` must be the same on all processes: the caller adds it to
  /// the facts of the run's inputs. Has no effect if the caller makes the processes agree.
  void compare_inputs(std::uint64_t which);

  /// Calls and received bytes since construction, by kind of operation. Each step counts the bytes of its busiest held device. A combined
  /// step counts as one call of each of its kinds.
  const received_count& received(op_ref kind) const;

  /// True if the last run skipped the updates of an optimizer because a number was not finite. The same on all processes.
  bool skipped() const;

  /// True if collectives are in flight while steps compute, in the next run. The same on all processes. @see overlap_mode
  bool overlaps() const;
  /// True until the processes have agreed on the faster mode, in the first runs under overlap_mode::automatic. A measured run ends with an
  /// agreement.
  bool measures_overlap() const;

  /// The number of runs started, and the bytes that each held device received in the last one.
  std::int64_t runs() const;
  std::span<const std::int64_t> received_in_run() const;
  /// The bytes that each held device received in the last run from devices on other nodes, including bytes to combine or to forward.
  std::span<const std::int64_t> between_nodes_in_run() const;

  /// The number of threads of this process, for kernels and for OpenMP matrix libraries. Default: OMP_NUM_THREADS, otherwise the cores
  /// available to the process, divided by the number of processes on them; 1 without OpenMP. A process that simulates at least as many
  /// devices runs several devices at a time. It may differ between processes. Results do not depend on it, except for rounding in
  /// libraries.
  int threads;

  /// Called before (true) and after (false) every step, even a skipped one, for timelines and checks. A fused group runs as its first
  /// step. For an asynchronous collective it is called around the wait for its completion. @see async_schedule
  callback<void(const node&, bool)> hook;

 private:
  std::unique_ptr<detail::thread_rule> rule_ = std::make_unique<detail::thread_rule>(detail::thread_rule::allows::one_at_a_time, "program");
  std::unique_ptr<detail::bound_program> program_;
  std::unique_ptr<detail::runner> runner_;
};

#if GSHARD_HAS_BODIES

GSHARD_INLINE executor::executor(const plan_view& plan, const kernel_table& kernels, const any_cluster& on, const dims& given,
                                 parameter_store store, detail::executor_call call)
    : threads(kernel::default_threads(on.backend().processes_here())),
      program_(std::make_unique<detail::bound_program>(plan, on, kernels.at(on.backend().level()), std::move(store), std::move(call.lent),
                                                       std::string(call.operation), std::move(call.owner))) {
  detail::binder(*program_, given, std::move(call.problem), call.operands);
  runner_ = std::make_unique<detail::runner>(*program_);
}
GSHARD_INLINE executor::~executor() = default;

GSHARD_INLINE const plan_view& executor::plan() const { return program_->plan; }
GSHARD_INLINE const any_cluster& executor::cluster() const { return program_->on; }
GSHARD_INLINE const parameter_store& executor::store() const { return program_->store; }
GSHARD_INLINE parameter_store& executor::store() { return program_->store; }
GSHARD_INLINE const extents& executor::sizes() const { return program_->bound.sizes; }
GSHARD_INLINE std::int64_t executor::arena_bytes() const { return program_->arena.empty() ? 0 : program_->arena.front().size(); }
GSHARD_INLINE const detail::bound_value& executor::value(std::int32_t v) const { return program_->value(v); }
GSHARD_INLINE void executor::run(const run_context& context, process_error problem, const collective_call& inputs) {
  const detail::thread_rule::use in_use = enter();
  const kernel::use_threads sharing(threads);
  runner_->run(context, std::move(problem), inputs, hook);
}
GSHARD_INLINE void executor::use_again(const collective_call& operands) {
  const detail::thread_rule::use in_use = enter();
  threads = kernel::default_threads(cluster().backend().processes_here());
  detail::agree_on_program(*program_, operands, {});
}
GSHARD_INLINE void executor::agreed_by_caller() { program_->agreements.without_first(plan()); }
GSHARD_INLINE const received_count& executor::received(op_ref kind) const { return program_->received[kind]; }
GSHARD_INLINE void executor::compare_inputs(std::uint64_t which) { runner_->compare_inputs(which); }
GSHARD_INLINE bool executor::skipped() const { return runner_->skipped(); }
GSHARD_INLINE bool executor::overlaps() const { return runner_->overlaps(); }
GSHARD_INLINE bool executor::measures_overlap() const { return runner_->measures_overlap(); }
GSHARD_INLINE std::int64_t executor::runs() const { return runner_->runs(); }
GSHARD_INLINE std::span<const std::int64_t> executor::received_in_run() const { return runner_->traffic_in_run().bytes(); }
GSHARD_INLINE std::span<const std::int64_t> executor::between_nodes_in_run() const { return runner_->traffic_in_run().between_nodes(); }

#endif
}}  // namespace gshard::v0
