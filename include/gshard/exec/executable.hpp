// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The executable of a program: bind extents, pass inputs, run, get typed tensors.

#include <gshard/base/hash.hpp>
#include <gshard/base/reason.hpp>
#include <gshard/comm/agreement.hpp>
#include <gshard/exec/bind/kernels.hpp>
#include <gshard/exec/executor.hpp>
#include <gshard/exec/spec_of.hpp>
#include <gshard/pass/program.hpp>
#include <gshard/pass/refused_plan.hpp>
#include <gshard/tensor/tensor.hpp>
#include <gshard/trace/call.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
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

/// A compiled program with its extents bound, on a cluster that has its mesh axes. Call it with the inputs to get the outputs.
/// An input is a tensor with the program's sharding, or a complete array on every process. Arrays are contiguous ranges in row-major order,
/// Eigen matrices or xtensor arrays, as for `from_global`. The type of an output includes its sharding. Parameters are kept in a store
/// that several programs may share.
/// A call allocates its outputs. After the first call, running the steps allocates nothing except in backends and libraries.
/// Communicates: the collectives of `Program::plan`, and one small message per call in which the processes agree on the call.
/// Compile time: number, element types, ranks and shardings of the inputs.
/// Throws `gshard::error`, on every process: as `executor`; if the extents of an input differ from the program's dims; if the processes
/// call different programs, or pass different arrays for a replicated input. The constructor throws if an input or output has a
/// `device_order` and the cluster's axes are not exactly the program's.
template <class Program>
class executable {
 public:
  /// `problem`, `operation`: as in `executor`.
  executable(const any_cluster& on, const dims& extents, parameter_store store, std::string problem = {}, std::string_view operation = {})
      : seed(store.seed()),
        run_(std::make_unique<executor>(Program::plan, kernels_of<Program>, on, extents, std::move(store),
                                        problem.empty() ? problem_of_orders(on.mesh()) : std::move(problem), operation)) {}
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
      inputs_ = {};
      std::string problem = detail::problem_of([&] {
        if constexpr (sizeof...(Inputs) == expected && expected > 0) write<0>(inputs...);
      });
      const auto facts = [&] {
        std::vector<fact> all;
        if constexpr (sizeof...(Inputs) == expected && expected > 0) add_facts<0>(all, inputs...);
        return all;
      };
      return run_once(run_->on(), std::move(problem), {inputs_.value(), facts});
    }
  }
  /// The same for exactly as many tensors as the program has inputs. The outputs keep the handle `on` of the cluster.
  template <class... T, class... Specs>
  auto call(const any_cluster& on, const tensor<T, Specs>&... inputs) {
    return run_once(on, detail::problem_of([&] { write<0>(inputs...); }));
  }

  /// Seed of the random operations, by default the store's; the same on all processes. Every step of the store draws other numbers.
  /// Checkpoints save the store's seed, not this one.
  std::uint64_t seed;

  /// Sets the number of threads of this process for later runs. @see executor::threads
  void threads(int n) { run_->threads = n; }

  executor& engine() { return *run_; }
  const executor& engine() const { return *run_; }

 private:
  static constexpr bool updates = [] {
    for (const parameter& p : Program::plan.parameters)
      if (p.updated >= 0) return true;
    return false;
  }();

  std::unique_ptr<executor> run_;
  fnv1a<std::uint64_t> inputs_;  // the hash of a call's inputs that must be the same on all processes

  auto run_once(const any_cluster& on, std::string problem, const collective_call& inputs = {}) {
    const parameter_store& store = run_->store();
    run_->run({seed, store.steps()}, std::move(problem), inputs);
    if constexpr (updates) store.set_steps(store.steps() + 1);
    return outputs(on, std::make_index_sequence<Program::plan.outputs.size()>{});
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
    if constexpr (distributed_tensor<Given>) {
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
    } else if constexpr (!detail::is_whole_array<Given, T>) {
      constexpr bool is_array = detail::has_elements<Given>;
      static_assert(holds<!is_array, expected_type<T>, actual_type<Given>>, "gshard: an input of a program has another element type");
      static_assert(holds<is_array, expected_type<T>, actual_type<Given>>,
                    "gshard: an input of a program is a tensor, a contiguous range (std::vector, std::span), an Eigen matrix, or an "
                    "xtensor array (include <gshard/tensor/eigen.hpp> or <gshard/tensor/xtensor.hpp>)");
    } else {
      detail::read_whole<T>(given, [&](const detail::whole_array<T>& whole) {
        const auto stride = whole.layout.strides_in(to.extents);
        if (!stride)
          throw error(
              detail::text_of_misfit(whole.layout, to.extents, "program: " + text_of_input<Input>(I) + " has ", ", its dims make "));
        for (std::size_t d = 0; d < to.data.size(); ++d) detail::copy_shard_of(whole.data, *stride, to.template as<T>(d), to.places[d]);
      });
      if (is_compared(to)) inputs_.add(detail::hash_of_bytes(std::as_bytes(elements_of<T>(to))));
    }
    if constexpr (sizeof...(Rest) > 0) write<I + 1>(rest...);
  }
  /// True if an input must be the same on all processes: a complete array for a replicated input.
  bool is_compared(const detail::bound_value& input) const { return run_->on().on().processes() > 1 && input.layout.used() == 0; }
  /// The elements of a replicated input, in row-major order.
  template <class T>
  static std::span<const T> elements_of(const detail::bound_value& input) {
    return {input.as<const T>(0), std::size_t(input.elements(0))};
  }
  /// Adds the elements of the compared inputs, from the caller's arrays: steps may have overwritten the program's buffers.
  template <std::size_t I, class Given, class... Rest>
  void add_facts(std::vector<fact>& facts, const Given& given, const Rest&... rest) const {
    using Input = std::tuple_element_t<I, typename Program::inputs>;
    using T = typename Input::element;
    if constexpr (detail::is_whole_array<Given, T>)
      if (const detail::bound_value& input = run_->input(I); is_compared(input))
        detail::read_whole<T>(given, [&](const detail::whole_array<T>& whole) {
          std::vector<T> room;
          const auto stride = whole.layout.strides_in(input.extents);
          if (stride) detail::add_elements(facts, text_of_input<Input>(I), detail::row_major_elements(whole, *stride, input.extents, room));
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
    tensor<T, Spec> t(on, from.extents);
    for (std::size_t d = 0; d < from.data.size(); ++d)
      if (from.bytes(d) > 0) std::memcpy(t.local_shard(d).data, from.data[d], std::size_t(from.bytes(d)));
    return t;
  }
};

}}  // namespace gshard::v0
