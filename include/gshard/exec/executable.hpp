// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The executable of a program: bind extents, pass inputs, run, get typed tensors.

#include <gshard/base/hash.hpp>
#include <gshard/base/reason.hpp>
#include <gshard/comm/agreement.hpp>
#include <gshard/comm/run_queue.hpp>
#include <gshard/exec/bind/kernels.hpp>
#include <gshard/exec/bound_port.hpp>
#include <gshard/exec/check_replicas.hpp>
#include <gshard/exec/executor.hpp>
#include <gshard/exec/spec_of.hpp>
#include <gshard/kernel/element.hpp>
#include <gshard/pass/program.hpp>
#include <gshard/pass/refused_plan.hpp>
#include <gshard/tensor/tensor.hpp>
#include <gshard/trace/call.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {
/// The output of a program that does not compile. It converts to any tensor type, so that its uses give no further errors.
struct refused_output : refused_tensor {
  constexpr any_number item() const { return {}; }
  template <class T, class Spec>
  operator tensor<T, Spec>() const;
};
}  // namespace detail

/// Stands for an input that is bound to memory of the caller. @see executable::bind_input
struct bound_memory {};
inline constexpr bound_memory bound{};

/// A compiled program with its extents bound, on a cluster that has its mesh axes. Call it with the inputs to get the outputs.
/// An input is a tensor with the program's sharding, or a complete array on every process. Arrays are contiguous ranges in row-major order,
/// Eigen matrices or xtensor arrays, as for `from_global`. The type of an output includes its sharding. Parameters are kept in a store
/// that several programs may share.
/// A call allocates its outputs. After the first call, running the steps allocates nothing except in backends and libraries. Inputs and
/// outputs may be bound to memory of the caller: then nothing is copied, and execute() allocates nothing.
/// Communicates: the collectives of `Program::plan`, and one small message per call in which the processes agree on the call.
/// Compile time: number, element types, ranks and shardings of the inputs.
/// Throws `gshard::error`, on every process: as `executor`; if the extents of an input differ from the program's dims; if the processes
/// call different programs, pass different tensors, or arrays that differ: all elements of a replicated input are compared, and samples of
/// a sharded one; at the first call, if copies of an input tensor differ. The constructor throws if an input or output has a `device_order`
/// and the cluster's axes are not exactly the program's.
template <class Program>
class executable {
 public:
  /// `problem`, `operation`, `operands`: as in `executor`.
  executable(const any_cluster& on, const dims& extents, parameter_store store, std::string problem = {}, std::string_view operation = {},
             const collective_call& operands = {})
      : seed(store.seed()),
        extents_(extents),
        run_(std::make_unique<executor>(Program::plan, kernels_of<Program>, on, extents, std::move(store),
                                        problem.empty() ? problem_of_orders(on.mesh()) : std::move(problem), operation,
                                        std::vector<detail::lent_value>(), operands)) {}
  executable(const any_cluster& on, const dims& extents) : executable(on, extents, parameter_store(on)) {}
  template <class... Given>
    requires(!detail::call<2, any_cluster, dims, parameter_store, std::string, std::string_view>::fits<Given...>)
  explicit executable(const Given&...) {
    static_assert(detail::accepts<Given...>,
                  "gshard: executable<program>(cluster, {{'B', 64}, ...}, store) takes a cluster, extents, and maybe a store");
  }

  /// Runs the program once. Returns a std::tuple of its outputs, or the output itself if there is one. A program that updates parameters
  /// counts as one step of its store. For the parameters after an error see executor::run.
  template <class... Inputs>
  auto operator()(const Inputs&... inputs) {
    constexpr std::size_t expected = std::tuple_size_v<typename Program::inputs>;
    static_assert(holds<sizeof...(Inputs) == expected, operands_in_equation<int(expected)>, operands_given<int(sizeof...(Inputs))>>,
                  "gshard: a program is called with another number of inputs than it has");
    if constexpr (detail::is_refused_program<Program>) {
      return detail::refused_output();
    } else {
      const detail::thread_rule::use in_use = run_->enter();
      std::string problem = prepare();
      inputs_ = {};
      if (problem.empty())
        problem = detail::problem_of([&] {
          if constexpr (sizeof...(Inputs) == expected && expected > 0) write<0>(inputs...);
        });
      const std::uint64_t tensors = compared_ ? 0 : mask_of_tensors<Inputs...>();
      if (!compared_) run_->compare_inputs(tensors);
      if (tensors != 0) inputs_.add(tensors);
      const auto facts = [&] {
        std::vector<fact> all;
        if (tensors != 0) all.push_back({"the inputs that are tensors, a bit each", std::to_string(tensors)});
        if constexpr (sizeof...(Inputs) == expected && expected > 0) add_facts<0>(all, inputs...);
        return all;
      };
      return run_once(run_->on(), std::move(problem), {inputs_.value(), facts});
    }
  }
  /// The same for exactly as many tensors as the program has inputs. The outputs keep the handle `on` of the cluster.
  template <class... T, class... Specs>
  auto call(const any_cluster& on, const tensor<T, Specs>&... inputs) {
    const std::optional<any_cluster> kept = rebinds_ ? std::optional(on) : std::nullopt;  // prepare() may destroy what `on` refers to
    const detail::thread_rule::use in_use = run_->enter();
    std::string problem = prepare();
    if constexpr (sizeof...(inputs) > 0)
      if (problem.empty()) problem = detail::problem_of([&] { write<0>(inputs...); });
    return run_once(kept ? *kept : on, std::move(problem));
  }

  /// Binds an input to memory of the caller: later calls read it there and pass `gshard::bound` in its place. `memory`: a tensor with the
  /// input's sharding, or an array that has the shard of this process's device, as for `from_global`. Contiguous row-major memory is used
  /// directly; other memory is copied in every run. The memory must stay valid, at the same address, until the executable is destroyed or
  /// the input is bound again. In debug builds, a run throws if a std::vector that was bound has moved its elements; so the vector itself
  /// must stay valid, too. The next run binds the program to the new memory: it communicates as the constructor does, and allocates. So all
  /// processes bind before the same run.
  /// Compile time: element type; sharding of a tensor; that the memory is not that of a temporary or of an expression.
  /// Throws `gshard::error`: if the memory has other extents than the shard; the next run throws if it overlaps memory of an output.
  template <std::size_t I, class Memory>
  void bind_input(Memory&& memory) {
    constexpr bool exists = I < std::tuple_size_v<typename Program::inputs>;
    static_assert(exists, "gshard: bind_input of an input that the program does not have");
    if constexpr (exists && !detail::is_refused_program<Program>) {
      using Input = std::tuple_element_t<I, typename Program::inputs>;
      using Spec = detail::spec_of<typename Program::mesh, detail::input_layout<Program, I>>;
      constexpr bool column_major = Input::is_column_major;
      check_outlives<Memory>();
      bind<typename Input::element, Spec, true, column_major>(bound_inputs_[I], run_->input(I), "input " + std::to_string(I), memory);
    }
  }
  /// Binds an output to memory of the caller, as bind_input does: later runs write it there. The tensor that a call returns for the output
  /// then uses this memory, unless the memory is not contiguous.
  template <std::size_t I, class Memory>
  void bind_output(Memory&& memory) {
    constexpr bool refused = detail::is_refused_program<Program>;
    constexpr bool exists = refused || I < Program::plan.outputs.size();
    static_assert(exists, "gshard: bind_output of an output that the program does not have");
    if constexpr (exists && !refused) {
      using T = detail::element_of<Program::plan.at(Program::plan.outputs[I].value).type>;
      using Spec = detail::spec_of<typename Program::mesh, detail::output_layout<Program, I>>;
      check_outlives<Memory>();
      bind<T, Spec, false>(bound_outputs_[I], run_->output(I), "output " + std::to_string(I), memory);
    }
  }

  /// Runs the program once on inputs that are all bound, and returns nothing: outputs are where they are bound. Allocates nothing after the
  /// first run. Communicates and throws as a call does.
  void execute() {
    const detail::thread_rule::use in_use = run_->enter();
    execute_here(prepare());
  }
  /// Starts execute() and returns; wait() returns when it is done, and throws its errors. In between, the caller must not use the inputs,
  /// the outputs or the executable. Runs that are started on one cluster run one after another, in the order in which they were started,
  /// and before any later call on the cluster. So all processes must start them in one order.
  /// A thread of the library runs them beside the caller's work. On MPI ranks it needs MPI_THREAD_MULTIPLE. With a lower level of thread
  /// support, the run happens in wait(), or in the next call on the cluster: then all processes must also wait in one order.
  void start() {
    std::string problem = prepare();
    if (started_) return execute_here(std::move(problem));  // throws on all processes
    backend& on = run_->on().on();
    started_.start(on.started(), [this, problem = std::move(problem)] { execute_here(problem); }, on.any_thread());
  }
  void wait() {
    if (!started_) throw error("program: wait() without start()");
    started_.wait();
  }

  /// A move and the destructor wait for a run that was started.
  executable(executable&&) noexcept = default;
  executable& operator=(executable&&) noexcept = default;
  ~executable() { started_.finish(); }

  /// Seed of the random operations, by default the store's; the same on all processes. Every step of the store draws other numbers.
  /// Checkpoints save the store's seed, not this one.
  std::uint64_t seed;

  /// A program that updates parameters compares the copies of its store's tensors after every so many steps, by `check_replicas`; 0: never.
  /// Default: 100, or 0 if compiled with NDEBUG. The same on all processes.
  std::uint32_t check_replicas_every = detail::steps_between_replica_checks;

  /// Sets the number of threads of this process for later runs. @see executor::threads
  void threads(int n) { run_->threads = n; }

  /// The number of calls whose step was skipped because a loss or gradient was not finite. They are not steps of the store.
  /// @see not_finite
  std::int64_t skipped_steps() const { return skipped_steps_; }

  /// The executor. A run after bind_input or bind_output makes another one, with new counts.
  executor& engine() { return *run_; }
  const executor& engine() const { return *run_; }

 private:
  static constexpr bool updates = [] {
    for (const parameter& p : Program::plan.parameters)
      if (p.updated >= 0) return true;
    return false;
  }();

  pending_run started_;  // first, so that a move of the executable waits for it
  dims extents_;
  std::unique_ptr<executor> run_;
  fnv1a<std::uint64_t> inputs_;  // the hash of a call's inputs that must be the same on all processes
  std::array<detail::bound_port, Program::plan.inputs.size()> bound_inputs_;
  std::array<detail::bound_port, Program::plan.outputs.size()> bound_outputs_;
  bool binds_ = false;    // if an input or output is bound
  bool rebinds_ = false;  // if one was bound since the last run
  bool compared_ = false;  // the copies of input tensors, in a call that did not throw
  std::int64_t skipped_steps_ = 0;

  /// A bit for each input that is given as a tensor.
  template <class... Inputs>
  static constexpr std::uint64_t mask_of_tensors() {
    std::uint64_t mask = 0;
    int i = 0;
    ((mask |= std::uint64_t(distributed_tensor<Inputs>) << i++), ...);
    return mask;
  }
  auto run_once(const any_cluster& on, std::string problem, const collective_call& inputs = {}) {
    step(std::move(problem), inputs);
    return outputs(on, std::make_index_sequence<Program::plan.outputs.size()>{});
  }
  void step(std::string problem, const collective_call& inputs = {}) {
    const parameter_store& store = run_->store();
    run_->run({seed, store.steps()}, std::move(problem), inputs);
    compared_ = true;
    if constexpr (updates) {
      if (run_->skipped()) ++skipped_steps_;
      else store.set_steps(store.steps() + 1);
      if (check_replicas_every > 0 && store.steps() % check_replicas_every == 0) check_replicas(store);
    }
    for (std::size_t i = 0; binds_ && i < bound_outputs_.size(); ++i)
      if (bound_outputs_[i].copy) bound_outputs_[i].copy(run_->output(i));
  }
  void execute_here(std::string problem) {
    const detail::thread_rule::use in_use = run_->enter();
    inputs_ = {};
    if (problem.empty())
      problem = detail::problem_of([&] {
        for (std::size_t i = 0; i < bound_inputs_.size(); ++i) read_bound(i);
      });
    const auto facts = [&] {
      std::vector<fact> all;
      for (std::size_t i = 0; i < bound_inputs_.size(); ++i) add_facts_of_bound(all, i);
      return all;
    };
    step(std::move(problem), {inputs_.value(), facts});
  }
  void read_bound(std::size_t i) {
    const detail::bound_port& p = bound_inputs_[i];
    if (!p.is_bound) {
      const std::string number = std::to_string(i);
      throw error("program: input " + number + " is bound to no memory; bind_input<" + number + "> binds it");
    }
    const detail::bound_value& input = run_->input(i);
    if (p.copy) p.copy(input);
    if (p.origin.number != 0) inputs_.add(p.origin.hash());
    if (p.add_elements && is_compared(input)) inputs_.add(detail::hash_of_bytes({input.data[0], std::size_t(input.bytes(0))}));
  }
  void add_facts_of_bound(std::vector<fact>& facts, std::size_t i) const {
    bound_inputs_[i].origin.add_to(facts, "input " + std::to_string(i));
    if (bound_inputs_[i].add_elements && is_compared(run_->input(i))) bound_inputs_[i].add_elements(facts);
  }
  void check_not_started() const {
    if (started_) throw error("program: a run of it was started; call wait() first");
  }

  template <class Memory>
  static constexpr void check_outlives() {
    if constexpr (!std::is_lvalue_reference_v<Memory>) {
      constexpr bool owns = distributed_tensor<Memory> || detail::owns_elements<std::remove_const_t<Memory>>;
      static_assert(!owns, "gshard: a program is bound to the memory of a temporary; bind a variable that outlives the executable");
    }
  }

  template <class T, class Spec, bool IsInput, bool ColumnMajor = false, class Memory>
  void bind(detail::bound_port& port, const detail::bound_value& value, const std::string& name, Memory& memory) {
    check_not_started();
    if constexpr (distributed_tensor<Memory>) {
      static_assert(holds<std::is_same_v<typename Memory::value_type, T>, expected_type<T>, actual_type<typename Memory::value_type>>,
                    "gshard: memory for a program has another element type than its input or output");
      using given = typename Memory::layout_type;
      static_assert(holds<std::is_same_v<given, Spec>, expected_type<Spec>, actual_type<given>>,
                    "gshard: memory for a program has another sharding than its input or output");
      static_assert(IsInput || !std::is_const_v<Memory>, "gshard: an output of a program is bound to const memory");
      port = detail::bind_tensor<T>(run_->on(), value, name, memory);
    } else {
      detail::check_whole_array<T, std::remove_const_t<Memory>>();
      constexpr bool is_array = detail::is_whole_array<std::remove_const_t<Memory>, T>;
      static_assert(!is_array || detail::has_memory<Memory>,
                    "gshard: a program is bound to an expression without memory; compute it first, into a variable");
      static_assert(IsInput || !std::is_const_v<typename detail::elements_in<Memory>::type>,
                    "gshard: an output of a program is bound to const memory");
      if constexpr (is_array && detail::has_memory<Memory>) port = detail::bind_array<T, IsInput, ColumnMajor>(value, name, memory);
    }
    binds_ = rebinds_ = true;
  }

  /// Binds the program to the memory of its inputs and outputs if that has changed. Returns an error text of this process, or nothing.
  std::string prepare() {
    if (!started_ && !binds_) return {};
    started_.finish();
    std::vector<detail::lent_value> lent;
    std::string problem = detail::problem_of([&] {
      check_not_started();
      detail::check_in_place(bound_inputs_, "input ");
      detail::check_in_place(bound_outputs_, "output ");
      if (rebinds_) lent = detail::lent_values(*run_, bound_inputs_, bound_outputs_);
    });
    if (!rebinds_) return problem;
    auto made = std::make_unique<executor>(Program::plan, kernels_of<Program>, run_->on(), extents_, run_->store(), std::move(problem),
                                           std::string_view(), std::move(lent));
    made->replace(*run_);
    run_ = std::move(made);
    rebinds_ = false;
    return {};
  }

  /// A tensor's device order refers to the mesh of its cluster. So inputs and outputs with a device order need the program's exact mesh.
  static std::string problem_of_orders(const mesh_shape& mesh) {
    const plan_view& plan = Program::plan;
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

  template <std::size_t I, class Given, class... Rest>
  void write(const Given& given, const Rest&... rest) {
    using Input = std::tuple_element_t<I, typename Program::inputs>;
    using T = typename Input::element;
    const detail::bound_value& to = run_->input(I);
    if constexpr (std::is_same_v<Given, bound_memory>) {
      read_bound(I);
    } else if (bound_inputs_[I].is_bound) {
      throw error("program: input " + std::to_string(I) + " is bound to memory; pass gshard::bound");
    } else if constexpr (distributed_tensor<Given>) {
      static_assert(holds<std::is_same_v<typename Given::value_type, T>, expected_type<T>, actual_type<typename Given::value_type>>,
                    "gshard: an input of a program has another element type");
      using Spec = detail::spec_of<typename Program::mesh, detail::input_layout<Program, I>>;
      static_assert(holds<std::is_same_v<typename Given::layout_type, Spec>, expected_type<Spec>, actual_type<typename Given::layout_type>>,
                    "gshard: an input of a program has another sharding; reshard it first");
      if (!given.on().same_as(run_->on())) throw error("program: input " + std::to_string(I) + " belongs to another cluster");
      if (!std::equal(given.extents().begin(), given.extents().end(), to.extents.begin(), to.extents.end()))
        throw error(text_of_mismatch(I, given.extents()));
      for (std::size_t d = 0; d < to.data.size(); ++d)
        if (to.bytes(d) > 0) std::memcpy(to.data[d], given.local_shard(d).data, std::size_t(to.bytes(d)));
      if (given.origin().number != 0) inputs_.add(given.origin().hash());
    } else if constexpr (!detail::is_whole_array<Given, T>) {
      constexpr bool is_array = detail::has_elements<Given>;
      static_assert(holds<!is_array, expected_type<T>, actual_type<Given>>, "gshard: an input of a program has another element type");
      static_assert(holds<is_array, expected_type<T>, actual_type<Given>>,
                    "gshard: an input of a program is a tensor, a contiguous range (std::vector, std::span), an Eigen matrix, or an "
                    "xtensor array (include <gshard/tensor/eigen.hpp> or <gshard/tensor/xtensor.hpp>); a scalar is an array of one "
                    "element: std::array{rate}");
    } else {
      detail::read_whole<T>(given, [&](const detail::whole_array<T>& whole) {
        const auto stride = whole.layout.strides_in(to.extents, Input::is_column_major);
        if (!stride)
          throw error(
              detail::text_of_misfit(whole.layout, to.extents, "program: " + text_of_input<Input>(I) + " has ", ", its dims make "));
        for (std::size_t d = 0; d < to.data.size(); ++d) detail::copy_shard_of(whole.data, *stride, to.template as<T>(d), to.places[d]);
        if (is_sampled(to)) inputs_.add(detail::hash_of_samples(whole, *stride, to.extents));
      });
      if (is_compared(to)) inputs_.add(detail::hash_of_bytes(std::as_bytes(elements_of<T>(to))));
    }
    if constexpr (sizeof...(Rest) > 0) write<I + 1>(rest...);
  }
  /// True if an input must be the same on all processes: a complete array for a replicated input.
  bool is_compared(const detail::bound_value& input) const { return run_->on().on().processes() > 1 && input.layout.used() == 0; }
  /// True if samples of an input must be: a complete array for a sharded input.
  bool is_sampled(const detail::bound_value& input) const { return run_->on().on().processes() > 1 && input.layout.used() != 0; }
  /// The elements of a replicated input, in row-major order.
  template <class T>
  static std::span<const T> elements_of(const detail::bound_value& input) {
    return {input.as<const T>(0), std::size_t(input.elements(0))};
  }
  /// Adds the compared elements of the inputs, from the caller's arrays: steps may have overwritten the program's buffers.
  template <std::size_t I, class Given, class... Rest>
  void add_facts(std::vector<fact>& facts, const Given& given, const Rest&... rest) const {
    using Input = std::tuple_element_t<I, typename Program::inputs>;
    using T = typename Input::element;
    if constexpr (std::is_same_v<Given, bound_memory>) add_facts_of_bound(facts, I);
    else if constexpr (distributed_tensor<Given>) given.origin().add_to(facts, text_of_input<Input>(I));
    else if constexpr (detail::is_whole_array<Given, T>)
      if (const detail::bound_value& input = run_->input(I); run_->on().on().processes() > 1)
        detail::read_whole<T>(given, [&](const detail::whole_array<T>& whole) {
          buffer room;
          const auto stride = whole.layout.strides_in(input.extents, Input::is_column_major);
          if (!stride) return;
          if (is_sampled(input)) detail::add_samples(facts, text_of_input<Input>(I), whole, *stride, input.extents);
          else detail::add_elements(facts, text_of_input<Input>(I), detail::row_major_elements(whole, *stride, input.extents, room));
        });
    if constexpr (sizeof...(Rest) > 0) add_facts<I + 1>(facts, rest...);
  }
  template <class Input>
  static std::string text_of_input(std::size_t i) {
    return "input " + std::to_string(i) + (Input::letters.empty() ? "" : " (" + std::string(Input::letters) + ")");
  }
  std::string text_of_mismatch(std::size_t i, std::span<const std::int64_t> given) const {
    return "program: input " + std::to_string(i) + " has extents " + detail::extents_text(given) + ", its dims make " +
           detail::extents_text(run_->input(i).extents);
  }

  template <std::size_t... I>
  auto outputs(const any_cluster& on, std::index_sequence<I...>) const {
    if constexpr (sizeof...(I) == 1) return (output<I>(on), ...);
    else return std::tuple{output<I>(on)...};
  }
  template <std::size_t I>
  auto output(const any_cluster& on) const {
    using T = detail::element_of<Program::plan.at(Program::plan.outputs[I].value).type>;
    using Spec = detail::spec_of<typename Program::mesh, detail::output_layout<Program, I>>;
    const detail::bound_value& from = run_->output(I);
    if (const std::vector<std::byte*>& shards = bound_outputs_[I].shards; !shards.empty()) {
      std::vector<T*> lent;
      for (std::byte* const shard : shards) lent.push_back(reinterpret_cast<T*>(shard));
      return tensor<T, Spec>(on, from.extents, lent);
    }
    tensor<T, Spec> t(on, from.extents);
    for (std::size_t d = 0; d < from.data.size(); ++d)
      if (from.bytes(d) > 0) std::memcpy(t.local_shard(d).data, from.data[d], std::size_t(from.bytes(d)));
    return t;
  }
};

}}  // namespace gshard::v0
