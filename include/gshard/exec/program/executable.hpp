// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The executable of a program: bind extents, pass inputs, run, get typed tensors.

#include <gshard/core/base/build_options.hpp>
#include <gshard/core/base/reason.hpp>
#include <gshard/core/plan/refused_plan.hpp>
#include <gshard/core/program/program.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/kernel/element.hpp>
#include <gshard/exec/process/callback.hpp>
#include <gshard/exec/program/executor.hpp>
#include <gshard/exec/program/inferred_extents.hpp>
#include <gshard/exec/program/kernels.hpp>
#include <gshard/exec/program/guarded_plan.hpp>
#include <gshard/exec/program/replan.hpp>
#include <gshard/exec/program/spec_of.hpp>
#include <gshard/exec/program/untyped_executable.hpp>
#include <gshard/exec/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
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

/// True for a cluster, extents, maybe a store, and all inputs.
template <class Program, class... Given>
inline constexpr bool replans = false;
template <class Program, class On, class... Given>
inline constexpr bool replans<Program, On, Given...> = std::is_convertible_v<const On&, any_cluster> && gives_inputs<Program, Given...>;

/// The plan that executables of a program run: its constant. Tests have another one that is made at run time.
template <class Program>
struct plan_to_run {
  static constexpr const auto& plan = Program::plan;
};

/// The type of an output of a program.
template <class Program, std::size_t I>
using output_tensor = tensor<element_of<Program::plan.at(Program::plan.outputs[I].value).type>,
                             spec_of<typename Program::mesh, output_layout<Program, I>>>;
}  // namespace detail

/// A compiled program with its extents bound, on a cluster that has its mesh axes. `run(x, ...)`, the call operator, runs it once and
/// returns its outputs. With all inputs bound to memory of the caller, run_bound() runs it and returns nothing, and start_bound() begins
/// that, until wait().
/// An input is a tensor with the program's sharding, or a complete array on every process. Arrays are contiguous ranges in row-major order,
/// Eigen matrices or xtensor arrays, as for `from_global`. The type of an output includes its sharding. Parameters are kept in a store
/// that several programs may share.
/// A call allocates its outputs. After the first call, running the steps allocates nothing except in backends and libraries. Inputs and
/// outputs may be bound to memory of the caller. If that memory is contiguous, nothing is copied, and run_bound() allocates nothing.
/// Communicates: the collectives of `Program::plan`, and one small message per call in which the processes agree on the call.
/// Compile time: number, element types, ranks and shardings of the inputs.
/// Throws `gshard::error`, on every process: as `executor`; if the extents of an input differ from the program's dims; if the processes
/// call different programs, or pass different tensors or arrays; at the first call, if copies of an input tensor differ. All elements of
/// an array are compared for a replicated input, and samples for a sharded one. The constructor throws if an input or output has a
/// `device_order` and the cluster's axes are not exactly the program's.
template <class Program>
class executable : public untyped_executable {
 public:
  executable(const any_cluster& on, const dims& extents, parameter_store store)
      : executable(constant_plan({extents, {}}), on, std::move(store)) {}
  executable(const any_cluster& on, const dims& extents) : executable(on, extents, parameter_store(on)) {}
  /// With the program's inputs, `extents` states only those of the other dims. Tensors and arrays with a shape have the extents of their
  /// dims. A range has that of a single dim, and a matrix that of the last dim of more than two. The inputs are read for their shapes.
  /// Throws also if an input contradicts `extents` or another input.
  template <class... Inputs>
    requires detail::are_inputs<Program, Inputs...>
  executable(const any_cluster& on, const dims& extents, parameter_store store, const Inputs&... inputs)
      : executable(constant_plan(detail::infer_extents<Program>(extents, inputs...)), on, std::move(store)) {}
  template <class... Inputs>
    requires detail::are_inputs<Program, Inputs...>
  executable(const any_cluster& on, const dims& extents, const Inputs&... inputs)
      : executable(on, extents, parameter_store(on), inputs...) {}
  template <class... Inputs>
    requires detail::are_inputs<Program, Inputs...>
  executable(const any_cluster& on, parameter_store store, const Inputs&... inputs)
      : executable(on, dims(), std::move(store), inputs...) {}
  template <class... Inputs>
    requires detail::are_inputs<Program, Inputs...>
  explicit executable(const any_cluster& on, const Inputs&... inputs) : executable(on, dims(), parameter_store(on), inputs...) {}
  /// The same behind `replan`, with a plan for these extents and this cluster: plans, which takes milliseconds. Or behind a guarded plan,
  /// with its alternative for these extents.
  /// Throws also if there is no such plan, because the program is `visible` or `strict`.
  /// @see replan_t, guarded_plan
  executable(detail::plan_source plans, const any_cluster& on, const dims& extents, parameter_store store)
      : executable(other_plan(plans, on, {extents, {}}), on, std::move(store)) {}
  executable(detail::plan_source plans, const any_cluster& on, const dims& extents = {})
      : executable(plans, on, extents, parameter_store(on)) {}
  template <class... Inputs>
    requires detail::are_inputs<Program, Inputs...>
  executable(detail::plan_source plans, const any_cluster& on, const dims& extents, parameter_store store, const Inputs&... inputs)
      : executable(other_plan(plans, on, detail::infer_extents<Program>(extents, inputs...)), on, std::move(store)) {}
  template <class... Inputs>
    requires detail::are_inputs<Program, Inputs...>
  executable(detail::plan_source plans, const any_cluster& on, const dims& extents, const Inputs&... inputs)
      : executable(plans, on, extents, parameter_store(on), inputs...) {}
  template <class On, class... Given>
    requires(!std::is_convertible_v<const On&, detail::plan_source> &&
             !detail::call<2, any_cluster, dims, parameter_store>::fits<On, Given...> &&
             !(std::is_convertible_v<const On&, any_cluster> && detail::gives_inputs<Program, Given...>))
  explicit executable(const On&, const Given&...) {
    refuse<On, Given...>();
  }
  template <class... Given>
    requires(!detail::call<1, any_cluster, dims, parameter_store>::fits<Given...> && !detail::replans<Program, Given...>)
  explicit executable(detail::plan_source, const Given&...) {
    refuse<Given...>();
  }
  template <class... Given>  // extents in braces
    requires(sizeof...(Given) > 0 && !detail::gives_inputs<Program, Given...> && !detail::call<1, parameter_store>::fits<Given...>)
  executable(const any_cluster&, const dims&, const Given&...) {
    refuse<Given...>();
  }
  template <class... Given>
    requires(sizeof...(Given) > 0 && !detail::gives_inputs<Program, Given...> && !detail::call<1, parameter_store>::fits<Given...>)
  executable(detail::plan_source, const any_cluster&, const dims&, const Given&...) {
    refuse<Given...>();
  }

  /// Runs the program once. Returns a std::tuple of its outputs, or the output itself if there is one. A program that updates parameters
  /// counts as one step of its store. executor::run documents the parameters after an error.
  template <class... Inputs>
  auto operator()(const Inputs&... inputs) {
    constexpr std::size_t expected = std::tuple_size_v<typename Program::inputs>;
    static_assert(holds<sizeof...(Inputs) == expected, operands_in_equation<int(expected)>, operands_given<int(sizeof...(Inputs))>>,
                  "gshard: a program is called with another number of inputs than it has");
    if constexpr (detail::is_refused_program<Program>) {
      return detail::refused_output();
    } else {
      constexpr bool reads = sizeof...(Inputs) == expected && expected > 0;
      const detail::thread_rule::use in_use = executor().enter();
      process_error problem = prepare();
      begin_inputs();
      if (problem.empty())
        problem = detail::problem_of([&] {
          if constexpr (reads) write<0>(inputs...);
        });
      run_once(std::move(problem), mask_of_tensors<Inputs...>(), [&](std::vector<fact>& facts) {
        if constexpr (reads) add_facts<0>(facts, inputs...);
      });
      return outputs(std::make_index_sequence<Program::plan.outputs.size()>{});
    }
  }

  /// What the plan assumed, and what a plan for these extents and this cluster would receive, compute and hold. Plans, which takes
  /// milliseconds. Communicates nothing.
  gshard::plan_report plan_report() const { return detail::make_plan_report(Program::traced(), Program::options(), executor()); }

  /// Binds an input to memory of the caller: later calls read it there and pass `gshard::bound` in its place. `memory`: a tensor with the
  /// input's sharding, or an array that has the shard of this process's device, as for `from_global`. Contiguous row-major memory is used
  /// directly; other memory is copied in every run. The memory must stay valid, at the same address, until the executable is destroyed or
  /// the input is bound again. In debug builds, a run throws if a bound std::vector has moved its elements, so the vector itself must also
  /// stay valid. The next run binds the program to the new memory: it communicates as the constructor does, and allocates. All processes
  /// must bind before the same run.
  /// Compile time: element type; sharding of a tensor; that the memory is not that of a temporary or of an expression.
  /// Throws `gshard::error`: if the memory has other extents than the shard; the next run throws if it overlaps memory of an output.
  template <std::size_t I, class Memory>
  void bind_input(Memory&& memory) {
    constexpr bool exists = I < std::tuple_size_v<typename Program::inputs>;
    static_assert(exists, "gshard: bind_input of an input that the program does not have");
    if constexpr (exists && !detail::is_refused_program<Program>) {
      using Input = std::tuple_element_t<I, typename Program::inputs>;
      using Spec = detail::spec_of<typename Program::mesh, detail::input_layout<Program, I>>;
      check_outlives<Memory>();
      bind_memory<typename Input::element, Spec, true, Input::is_column_major>(I, memory);
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
      using Output = detail::output_tensor<Program, I>;
      check_outlives<Memory>();
      bind_memory<typename Output::value_type, typename Output::layout_type, false, false>(I, memory);
    }
  }

 private:
  template <class... Given>
  static constexpr void refuse() {
    static_assert(detail::accepts<Given...>,
                  "gshard: executable<program>(cluster, {{'B', 64}, ...}, store, x, ...) takes a cluster, extents, maybe a store, and "
                  "maybe all inputs, which have extents as well; all of these also behind gs::replan or a gs::guarded_plan");
  }
  /// A plan, and the extents to which it is bound.
  struct planned {
    plan_view plan;
    detail::inferred_extents found;
    std::shared_ptr<const void> owner{};
  };
  static planned constant_plan(detail::inferred_extents found) { return {detail::plan_to_run<Program>::plan, std::move(found)}; }
  static planned other_plan(detail::plan_source from, const any_cluster& on, detail::inferred_extents found) {
    if (from.guarded) {
      const bool is_own = from.guarded->is_of(Program::plan);
      if (!is_own && found.problem.empty()) found.problem = "executable: the guarded plan is one of another program";
      if (!is_own) return constant_plan(std::move(found));
      const std::shared_ptr<const plan_tables> chosen = from.guarded->at(found.all.find(from.guarded->letter())).plan;
      return {chosen->view(), std::move(found), chosen};
    }
    const auto made = std::make_shared<const plan_tables>(
        detail::plan_at(Program::traced(), Program::plan, on, found.all, Program::options()));
    if (found.problem.empty()) found.problem = detail::problem_of_replan(*made);
    return {made->problem ? plan_view(Program::plan) : made->view(), std::move(found), made};
  }
  executable(planned made, const any_cluster& on, parameter_store store)
      : untyped_executable(made.plan, kernels_of<Program>, on, made.found.all, std::move(store), std::move(made.found.problem), {},
                           std::vector<fact>{{"the compile options of the program", GSHARD_FLOAT_OPTIONS}}, std::move(made.owner)) {
    check_replicas_every = detail::steps_between_replica_checks;
  }

  /// A bit for each input that is given as a tensor.
  template <class... Inputs>
  static constexpr std::uint64_t mask_of_tensors() {
    std::uint64_t mask = 0;
    int i = 0;
    ((mask |= std::uint64_t(distributed_tensor<Inputs>) << i++), ...);
    return mask;
  }

  template <class T, class Spec, bool IsInput, bool ColumnMajor, class Memory>
  void bind_memory(std::size_t i, Memory& memory) {
    if constexpr (distributed_tensor<Memory>) {
      static_assert(holds<std::is_same_v<typename Memory::value_type, T>, expected_type<T>, actual_type<typename Memory::value_type>>,
                    "gshard: memory for a program has another element type than its input or output");
      using given = typename Memory::layout_type;
      static_assert(holds<std::is_same_v<given, Spec>, expected_type<Spec>, actual_type<given>>,
                    "gshard: memory for a program has another sharding than its input or output");
      static_assert(IsInput || !std::is_const_v<Memory>, "gshard: an output of a program is bound to const memory");
      bind(IsInput, i, memory);
    } else {
      detail::check_whole_array<T, std::remove_const_t<Memory>>();
      constexpr bool is_array = detail::is_whole_array<std::remove_const_t<Memory>, T>;
      static_assert(!is_array || detail::has_memory<Memory>,
                    "gshard: a program is bound to an expression without memory; compute it first, into a variable");
      static_assert(IsInput || !std::is_const_v<typename detail::elements_in<Memory>::type>,
                    "gshard: an output of a program is bound to const memory");
      if constexpr (is_array && detail::has_memory<Memory>)
        detail::read_whole<T>(memory, [&](const detail::whole_array<T>& given) { bind(IsInput, i, given, ColumnMajor, moves_of(memory)); });
    }
  }

  template <std::size_t I>
  using input_at = std::tuple_element_t<I, typename Program::inputs>;
  template <std::size_t I>
  static constexpr input_name name_of_input{I, input_at<I>::letters};

  template <std::size_t I, class Given, class... Rest>
  void write(const Given& given, const Rest&... rest) {
    using T = typename input_at<I>::element;
    if constexpr (std::is_same_v<Given, bound_memory>) {
      write_bound(I);
    } else if constexpr (distributed_tensor<Given>) {
      static_assert(holds<std::is_same_v<typename Given::value_type, T>, expected_type<T>, actual_type<typename Given::value_type>>,
                    "gshard: an input of a program has another element type");
      using Spec = detail::spec_of<typename Program::mesh, detail::input_layout<Program, I>>;
      static_assert(holds<std::is_same_v<typename Given::layout_type, Spec>, expected_type<Spec>, actual_type<typename Given::layout_type>>,
                    "gshard: an input of a program has another sharding; reshard it first");
      write_tensor(name_of_input<I>, given);
    } else if constexpr (!detail::is_whole_array<Given, T>) {
      constexpr bool is_array = detail::has_elements<Given>;
      static_assert(holds<!is_array, expected_type<T>, actual_type<Given>>, "gshard: an input of a program has another element type");
      static_assert(holds<is_array, expected_type<T>, actual_type<Given>>,
                    "gshard: an input of a program is a tensor, a contiguous range (std::vector, std::span), an Eigen matrix, or an "
                    "xtensor array (include <gshard/exec/tensor/eigen.hpp> or <gshard/exec/tensor/xtensor.hpp>); a scalar is an array of "
                    "one element: std::array{rate}");
    } else {
      detail::read_whole<T>(given, [&](const detail::whole_array<T>& whole) {
        write_array(name_of_input<I>, whole, input_at<I>::is_column_major);
      });
    }
    if constexpr (sizeof...(Rest) > 0) write<I + 1>(rest...);
  }
  template <std::size_t I, class Given, class... Rest>
  void add_facts(std::vector<fact>& facts, const Given& given, const Rest&... rest) const {
    using T = typename input_at<I>::element;
    if constexpr (std::is_same_v<Given, bound_memory>) add_facts_of_bound(facts, I);
    else if constexpr (distributed_tensor<Given>) add_facts_of_tensor(facts, name_of_input<I>, given);
    else if constexpr (detail::is_whole_array<Given, T>)
      detail::read_whole<T>(given, [&](const detail::whole_array<T>& whole) {
        add_facts_of_array(facts, name_of_input<I>, whole, input_at<I>::is_column_major);
      });
    if constexpr (sizeof...(Rest) > 0) add_facts<I + 1>(facts, rest...);
  }

  template <std::size_t... I>
  auto outputs(std::index_sequence<I...>) const {
    if constexpr (sizeof...(I) == 1) return (read<I>(), ...);
    else return std::tuple{read<I>()...};
  }
  template <std::size_t I>
  auto read() const {
    using output_type = detail::output_tensor<Program, I>;
    return detail::tensor_access::typed<output_type>(read_output(I, output_type::layout_type::named, cluster()));
  }
};

}}  // namespace gshard::v0
