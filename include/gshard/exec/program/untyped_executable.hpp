// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The parts of an executable that do not depend on the types of inputs and outputs: binding, runs, agreement of processes on inputs.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/hash.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/process/callback.hpp>
#include <gshard/exec/process/run_queue.hpp>
#include <gshard/exec/program/bound_port.hpp>
#include <gshard/exec/program/check_replicas.hpp>
#include <gshard/exec/program/executor.hpp>
#include <gshard/exec/tensor/cluster.hpp>
#include <gshard/exec/tensor/untyped_tensor.hpp>
#include <gshard/exec/tensor/whole_array.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/exec/tensor/buffer.hpp>

#include <algorithm>
#include <cstring>
#endif

namespace gshard { inline namespace v0 {

/// The argument for an input that is bound to memory of the caller. @see executable::bind_input
struct bound_memory {};
inline constexpr bound_memory bound{};

/// The base of all executables. `executable` adds the types of inputs and outputs.
/// @see executable
class untyped_executable {
 public:
  /// Runs the program once, with inputs that are all bound. Outputs are written to the memory to which they are bound. Allocates nothing
  /// after the first run. Communicates and throws as a call does.
  void run_bound();
  /// Starts run_bound() and returns; wait() returns when it is done, and throws its errors. In between, the caller must not use the inputs,
  /// the outputs or the executable. Runs that are started on one cluster run one after another, in the order in which they were started,
  /// and before any later call on the cluster. Therefore all processes must start them in the same order. A thread of the library runs them
  /// while the caller works. On MPI ranks it needs MPI_THREAD_MULTIPLE. With a lower level of thread support, the run happens in wait(), or
  /// in the next call on the cluster. All processes must then also wait in the same order.
  void start_bound();
  void wait();

  /// Seed of the random operations, by default the store's; the same on all processes. Every step of the store draws different numbers.
  /// Checkpoints save the store's seed, not this one.
  std::uint64_t seed;

  /// The number of steps after which a program that updates parameters compares the copies of its store's tensors, by `check_replicas`.
  /// Never if 0. Default: 100, or 0 if the program is compiled with NDEBUG. The same on all processes.
  std::uint32_t check_replicas_every = 0;  // `executable` sets it: gshard::compiled has an NDEBUG of its own

  /// Sets the number of threads of this process for later runs. @see executor::threads
  void threads(int n) { run_->threads = n; }

  /// The number of calls whose step was skipped because a loss or gradient was not finite. They are not steps of the store.
  /// @see not_finite
  std::int64_t skipped_steps() const { return skipped_steps_; }

  /// The executor. A run after bind_input or bind_output makes another one, with new counts.
  gshard::executor& executor() { return *run_; }
  const gshard::executor& executor() const { return *run_; }

 protected:
  /// `problem`, `operation`, `operands`: as in `executor`. The plan must outlive the executable, unless `owner` owns it.
  untyped_executable(const plan_view& plan, const kernel_table& kernels, const any_cluster& on, const dims& extents, parameter_store store,
                     process_error problem, std::string_view operation, const collective_call& operands,
                     std::shared_ptr<const void> owner = nullptr);
  untyped_executable();  // not defined: for calls that do not compile
  /// A move and the destructor wait for a run that was started.
  untyped_executable(untyped_executable&&) noexcept = default;
  untyped_executable& operator=(untyped_executable&&) noexcept = default;
  ~untyped_executable() { started_.finish(); }

  /// An input of the program, for errors.
  struct input_name {
    std::size_t number;
    std::string_view letters;  // of its declaration, or empty

    std::string text() const;  // "input 0 (BM)"
  };
  const detail::bound_value& input(std::size_t i) const { return run_->input(i); }
  const detail::bound_value& output(std::size_t i) const { return run_->output(i); }
  const any_cluster& cluster() const { return run_->cluster(); }
  /// The result of the last run, with this sharding: a copy, or the memory to which the output is bound if no copy is needed.
  detail::untyped_result read_output(std::size_t i, const named_sharding& spec, const any_cluster& on) const;

  /// Binds the program to the memory of its inputs and outputs if that has changed. Returns an error of this process, or nothing.
  process_error prepare();
  /// Begins a call: forgets the inputs of the previous call.
  void begin_inputs() { inputs_ = {}; }
  /// Write an input. Throw `gshard::error` on this process alone.
  void write_bound(std::size_t i);
  void write_tensor(input_name at, const untyped_tensor& given);
  void write_array(input_name at, const detail::untyped_array& given, bool column_major);
  /// Add the compared elements of the inputs, from the caller's arrays: steps may have overwritten the program's buffers.
  void add_facts_of_bound(std::vector<fact>& facts, std::size_t i) const;
  void add_facts_of_tensor(std::vector<fact>& facts, input_name at, const untyped_tensor& given) const;
  void add_facts_of_array(std::vector<fact>& facts, input_name at, const detail::untyped_array& given, bool column_major) const;

  /// Runs the steps, after the inputs are written. `tensors`: the inputs that are tensors, a bit each; add_facts(facts): adds the facts
  /// about the inputs that the processes compare.
  template <class AddFacts>
  void run_once(process_error problem, std::uint64_t tensors, const AddFacts& add_facts) {
    if (compared_) tensors = 0;
    else run_->compare_inputs(tensors);
    if (tensors != 0) inputs_.add(tensors);
    const auto facts = [&] {
      std::vector<fact> all;
      if (tensors != 0) all.push_back({"the inputs that are tensors, a bit each", std::to_string(tensors)});
      add_facts(all);
      return all;
    };
    step(std::move(problem), {inputs_.value(), facts});
  }
  void step(process_error problem, const collective_call& inputs = {});
  /// Writes exactly as many tensors as the program has inputs, and runs the steps.
  void run_on_tensors(std::span<const untyped_tensor* const> inputs);

  template <class Memory>
  static constexpr void check_outlives() {
    if constexpr (!std::is_lvalue_reference_v<Memory>) {
      constexpr bool owns = std::is_base_of_v<untyped_tensor, Memory> || detail::owns_elements<std::remove_const_t<Memory>>;
      static_assert(!owns, "gshard: a program is bound to the memory of a temporary; bind a variable that outlives the executable");
    }
  }
  /// In debug builds: a function that returns true if a std::vector has moved its elements since.
  template <class Memory>
  static callback<bool()> moves_of([[maybe_unused]] Memory& memory) {
#ifndef NDEBUG
    if constexpr (requires { memory.capacity(); })
      return [&memory, data = memory.data(), size = memory.size()] { return memory.data() != data || memory.size() != size; };
#endif
    return {};
  }
  /// Binds an input or output to memory of the caller; `has_moved`: for a std::vector in debug builds.
  void bind(bool is_input, std::size_t i, const untyped_tensor& memory);
  void bind(bool is_input, std::size_t i, const detail::untyped_array& memory, bool column_major, callback<bool()> has_moved);

 private:
  pending_run started_;  // first, so that a move of the executable waits for it
  std::shared_ptr<const void> owner_;  // of the plan; executors share it
  kernel_table const* kernels_;
  dims extents_;
  std::unique_ptr<gshard::executor> run_;
  fnv1a<std::uint64_t> inputs_;  // the hash of a call's inputs that must be the same on all processes
  std::vector<detail::bound_port> bound_inputs_, bound_outputs_;
  bool updates_ = false;   // if the program updates parameters
  bool binds_ = false;     // if an input or output is bound
  bool rebinds_ = false;   // if one was bound since the last run
  bool compared_ = false;  // if a call that did not throw has compared the copies of input tensors
  std::int64_t skipped_steps_ = 0;

  void run_bound_here(process_error problem);
  void check_not_started() const;
  void check_not_bound(std::size_t input) const;
  static std::string name_of_port(bool is_input, std::size_t i);  // "input 0"
  void set_port(bool is_input, std::size_t i, detail::bound_port port);
  /// True if an input must be the same on all processes: a complete array for a replicated input.
  bool is_compared(const detail::bound_value& v) const { return cluster().backend().processes() > 1 && v.layout.used() == 0; }
  /// True if samples of an input must be the same on all processes: a complete array for a sharded input.
  bool is_sampled(const detail::bound_value& v) const { return cluster().backend().processes() > 1 && v.layout.used() != 0; }
};

#if GSHARD_HAS_BODIES

namespace detail {
/// A tensor's device order refers to the mesh of its cluster, so inputs and outputs with a device order need the program's exact mesh.
inline std::string problem_of_orders(const plan_view& plan, const mesh_shape& mesh) {
  bool same = mesh.rank() == plan.mesh.rank();
  for (int a = 0; same && a < mesh.rank(); ++a) same = mesh.name(a) == plan.mesh.name(a);
  const auto text = [&](const char* what, list_view<port> ports) {
    for (std::size_t i = 0; i < ports.size() && !same; ++i)
      if (plan.at(ports[i].value).layout.order != 0)
        return "program: " + std::string(what) + std::to_string(i) +
               " has a device order; the cluster must have exactly the program's axes, in the same order";
    return std::string();
  };
  const std::string problem = text("input ", plan.inputs);
  return problem.empty() ? text("output ", plan.outputs) : problem;
}

inline std::span<const std::byte> bytes_of(const bound_value& v, std::size_t device) {
  return {v.data[device], std::size_t(v.bytes(device))};
}
}  // namespace detail

GSHARD_INLINE untyped_executable::untyped_executable(const plan_view& plan, const kernel_table& kernels, const any_cluster& on,
                                                     const dims& extents, parameter_store store, process_error problem,
                                                     std::string_view operation, const collective_call& operands,
                                                     std::shared_ptr<const void> owner)
    : seed(store.seed()),
      owner_(std::move(owner)),
      kernels_(&kernels),
      extents_(extents),
      bound_inputs_(plan.inputs.size()),
      bound_outputs_(plan.outputs.size()) {
  if (problem.empty()) problem = detail::problem_of_orders(plan, on.mesh());
  for (const parameter& p : plan.parameters) updates_ = updates_ || p.updated >= 0;
  run_ = std::make_unique<gshard::executor>(plan, kernels, on, extents, std::move(store),
                                    detail::executor_call{std::move(problem), operation, {}, operands, owner_});
}

GSHARD_INLINE std::string untyped_executable::input_name::text() const {
  return "input " + std::to_string(number) + (letters.empty() ? "" : " (" + std::string(letters) + ")");
}

GSHARD_INLINE void untyped_executable::run_bound() {
  const detail::thread_rule::use in_use = run_->enter();
  run_bound_here(prepare());
}

GSHARD_INLINE void untyped_executable::start_bound() {
  process_error problem = prepare();
  if (started_) return run_bound_here(std::move(problem));  // throws on all processes
  backend& b = cluster().backend();
  started_.start(b.started(), [this, problem = std::move(problem)] { run_bound_here(problem); }, b.any_thread());
}

GSHARD_INLINE void untyped_executable::wait() {
  if (!started_) throw error("program: wait() without start_bound()");
  started_.wait();
}

GSHARD_INLINE process_error untyped_executable::prepare() {
  if (!started_ && !binds_) return {};
  started_.finish();
  std::vector<detail::lent_value> lent;
  process_error problem = detail::problem_of([&] {
    check_not_started();
    detail::check_in_place(bound_inputs_, "input ");
    detail::check_in_place(bound_outputs_, "output ");
    if (rebinds_) lent = detail::lent_values(*run_, bound_inputs_, bound_outputs_);
  });
  if (!rebinds_) return problem;
  auto made = std::make_unique<gshard::executor>(run_->plan(), *kernels_, cluster(), extents_, run_->store(),
                                         detail::executor_call{.problem = std::move(problem), .lent = std::move(lent), .owner = owner_});
  made->replace(*run_);
  run_ = std::move(made);
  rebinds_ = false;
  return {};
}

GSHARD_INLINE void untyped_executable::step(process_error problem, const collective_call& inputs) {
  parameter_store& store = run_->store();
  run_->run({seed, store.steps()}, std::move(problem), inputs);
  compared_ = true;
  if (updates_) {
    if (run_->skipped()) ++skipped_steps_;
    else store.set_steps(store.steps() + 1);
    if (check_replicas_every > 0 && store.steps() % check_replicas_every == 0) check_replicas(store);
  }
  for (std::size_t i = 0; binds_ && i < bound_outputs_.size(); ++i)
    if (bound_outputs_[i].copy) bound_outputs_[i].copy(output(i));
}

GSHARD_INLINE void untyped_executable::run_on_tensors(std::span<const untyped_tensor* const> inputs) {
  const detail::thread_rule::use in_use = run_->enter();
  process_error problem = detail::problem_of([&] {
    for (std::size_t i = 0; i < inputs.size(); ++i) write_tensor({i, {}}, *inputs[i]);
  });
  step(std::move(problem));
}

GSHARD_INLINE void untyped_executable::run_bound_here(process_error problem) {
  const detail::thread_rule::use in_use = run_->enter();
  begin_inputs();
  if (problem.empty())
    problem = detail::problem_of([&] {
      for (std::size_t i = 0; i < bound_inputs_.size(); ++i) write_bound(i);
    });
  const auto facts = [&] {
    std::vector<fact> all;
    for (std::size_t i = 0; i < bound_inputs_.size(); ++i) add_facts_of_bound(all, i);
    return all;
  };
  step(std::move(problem), {inputs_.value(), facts});
}

GSHARD_INLINE void untyped_executable::write_bound(std::size_t i) {
  const detail::bound_port& p = bound_inputs_[i];
  if (!p.is_bound) {
    const std::string number = std::to_string(i);
    throw error("program: input " + number + " is bound to no memory; bind_input<" + number + "> binds it");
  }
  const detail::bound_value& to = input(i);
  if (p.copy) p.copy(to);
  if (p.origin.number != 0) inputs_.add(p.origin.hash());
  if (p.add_elements && is_compared(to)) inputs_.add(detail::hash_of_bytes(detail::bytes_of(to, 0)));
}

GSHARD_INLINE void untyped_executable::write_tensor(input_name at, const untyped_tensor& given) {
  const detail::bound_value& to = input(at.number);
  check_not_bound(at.number);
  if (!given.cluster().same_as(cluster())) throw error("program: input " + std::to_string(at.number) + " belongs to another cluster");
  if (!std::ranges::equal(given.extents(), to.extents))
    throw error("program: input " + std::to_string(at.number) + " has extents " + detail::extents_text(given.extents()) +
                ", its dims make " + detail::extents_text(to.extents));
  for (std::size_t d = 0; d < to.data.size(); ++d)
    if (to.bytes(d) > 0) std::memcpy(to.data[d], given.shard(d), std::size_t(to.bytes(d)));
  if (const detail::tensor_origin& from = detail::tensor_access::origin(given); from.number != 0) inputs_.add(from.hash());
}

GSHARD_INLINE void untyped_executable::write_array(input_name at, const detail::untyped_array& given, bool column_major) {
  const detail::bound_value& to = input(at.number);
  check_not_bound(at.number);
  const auto stride = given.layout.strides_in(to.extents, column_major);
  if (!stride) throw error(detail::text_of_misfit(given.layout, to.extents, "program: " + at.text() + " has ", ", its dims make "));
  for (std::size_t d = 0; d < to.data.size(); ++d)
    detail::copy_shard_of(given.data, *stride, to.data[d], to.places[d], size_of(given.type));
  if (is_sampled(to)) inputs_.add(detail::hash_of_samples(given, *stride, to.extents));
  if (is_compared(to)) inputs_.add(detail::hash_of_bytes(detail::bytes_of(to, 0)));
}

GSHARD_INLINE void untyped_executable::add_facts_of_bound(std::vector<fact>& facts, std::size_t i) const {
  bound_inputs_[i].origin.add_to(facts, "input " + std::to_string(i));
  if (bound_inputs_[i].add_elements && is_compared(input(i))) bound_inputs_[i].add_elements(facts);
}

GSHARD_INLINE void untyped_executable::add_facts_of_tensor(std::vector<fact>& facts, input_name at, const untyped_tensor& given) const {
  detail::tensor_access::origin(given).add_to(facts, at.text());
}

GSHARD_INLINE void untyped_executable::add_facts_of_array(std::vector<fact>& facts, input_name at, const detail::untyped_array& given,
                                                          bool column_major) const {
  const detail::bound_value& to = input(at.number);
  if (cluster().backend().processes() == 1) return;
  const auto stride = given.layout.strides_in(to.extents, column_major);
  if (!stride) return;
  buffer room;
  if (is_sampled(to)) detail::add_samples(facts, at.text(), given, *stride, to.extents);
  else detail::add_elements(facts, at.text(), given.type, detail::row_major_elements(given, *stride, to.extents, room));
}

GSHARD_INLINE detail::untyped_result untyped_executable::read_output(std::size_t i, const named_sharding& spec,
                                                                     const any_cluster& on) const {
  const detail::bound_value& from = output(i);
  if (const std::vector<std::byte*>& lent = bound_outputs_[i].shards; !lent.empty()) return {on, from.extents, spec, from.type, lent};
  detail::untyped_result to(on, from.extents, spec, from.type);
  for (std::size_t d = 0; d < from.data.size(); ++d)
    if (from.bytes(d) > 0) std::memcpy(to.shard(d), from.data[d], std::size_t(from.bytes(d)));
  return to;
}

GSHARD_INLINE void untyped_executable::bind(bool is_input, std::size_t i, const untyped_tensor& memory) {
  check_not_started();
  set_port(is_input, i, detail::bind_tensor(cluster(), is_input ? input(i) : output(i), name_of_port(is_input, i), memory));
}

GSHARD_INLINE void untyped_executable::bind(bool is_input, std::size_t i, const detail::untyped_array& memory, bool column_major,
                                            callback<bool()> has_moved) {
  check_not_started();
  detail::bound_port port = detail::bind_array(is_input ? input(i) : output(i), name_of_port(is_input, i), memory, is_input, column_major);
  port.has_moved = std::move(has_moved);
  set_port(is_input, i, std::move(port));
}

GSHARD_INLINE std::string untyped_executable::name_of_port(bool is_input, std::size_t i) {
  return (is_input ? "input " : "output ") + std::to_string(i);
}

GSHARD_INLINE void untyped_executable::set_port(bool is_input, std::size_t i, detail::bound_port port) {
  (is_input ? bound_inputs_ : bound_outputs_)[i] = std::move(port);
  binds_ = rebinds_ = true;
}

GSHARD_INLINE void untyped_executable::check_not_bound(std::size_t i) const {
  if (bound_inputs_[i].is_bound) throw error("program: input " + std::to_string(i) + " is bound to memory; pass gshard::bound");
}

GSHARD_INLINE void untyped_executable::check_not_started() const {
  if (started_) throw error("program: a run of it was started; call wait() first");
}

#endif

}}  // namespace gshard::v0
