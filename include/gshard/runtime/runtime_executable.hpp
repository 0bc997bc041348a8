// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The executable of a program that was planned at run time.

#include <gshard/all_kernels.hpp>
#include <gshard/core/base/build_options.hpp>
#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/reason.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/program/check_replicas.hpp>
#include <gshard/exec/program/inferred_extents.hpp>
#include <gshard/exec/program/replan.hpp>
#include <gshard/exec/program/untyped_executable.hpp>
#include <gshard/exec/tensor/tensor.hpp>
#include <gshard/exec/tensor/whole_array.hpp>
#include <gshard/runtime/runtime_plan.hpp>
#include <gshard/runtime/runtime_program.hpp>
#include <gshard/runtime/runtime_tensor.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/core/trace/shape.hpp>

#include <algorithm>
#endif

namespace gshard { inline namespace v0 {

namespace detail {
template <class Given>
inline constexpr bool is_any_tensor = std::is_base_of_v<untyped_tensor, Given>;
/// A tensor, an array of any element type, or `bound`.
template <class Given>
concept program_input = is_any_tensor<Given> || has_elements<Given> || std::same_as<Given, bound_memory>;
}  // namespace detail

/// A program that was planned at run time, or a plan that was read from a file. Its extents are bound, on a cluster that has its mesh axes.
/// It runs as `executable` does. Its inputs are tensors or complete arrays, whose types and shardings are checked at run time. Its outputs
/// are a list of `runtime_tensor`.
///
///     gs::runtime_executable run(layer, cluster, {{'G', 16}, {'S', 64}, {'M', 32}, {'E', 8}, {'H', 128}});
///     const gs::runtime_tensor y = std::move(run(x).front());
///
/// Communicates: as `executable`.
/// Compile time: that an input is a tensor or an array.
/// Throws `gshard::error`, on every process: as `executable`; for another number of inputs than the program has; if the element type, the
/// rank or the sharding of an input is not the program's.
/// @see runtime_program, executable
class runtime_executable : public untyped_executable {
 public:
  runtime_executable(runtime_plan program, const any_cluster& on, const dims& extents, parameter_store store)
      : runtime_executable(std::move(program), on, std::move(store), {extents, {}}) {}
  runtime_executable(runtime_plan program, const any_cluster& on, const dims& extents = {})
      : runtime_executable(std::move(program), on, parameter_store(on), {extents, {}}) {}
  /// With the program's inputs, `extents` states only those of the other dims. @see executable
  template <detail::program_input First, detail::program_input... Inputs>
  runtime_executable(runtime_plan program, const any_cluster& on, const dims& extents, parameter_store store, const First& first,
                     const Inputs&... inputs)
      : runtime_executable(program, on, std::move(store), infer(program, extents, first, inputs...)) {}
  template <detail::program_input First, detail::program_input... Inputs>
  runtime_executable(runtime_plan program, const any_cluster& on, const dims& extents, const First& first, const Inputs&... inputs)
      : runtime_executable(std::move(program), on, extents, parameter_store(on), first, inputs...) {}

  template <class... Given>
    requires(sizeof...(Given) > 0 && !detail::call<1, parameter_store>::fits<Given...> && !(detail::program_input<Given> && ...))
  runtime_executable(const runtime_plan& program, const any_cluster&, const dims&, const Given&...) : program_(program) {
    check_inputs<Given...>();
  }

  /// Runs the program once.
  template <class... Inputs>
  std::vector<runtime_tensor> operator()(const Inputs&... inputs) {
    check_inputs<Inputs...>();
    std::uint64_t tensors = 0;
    int i = 0;
    ((tensors |= std::uint64_t(detail::is_any_tensor<Inputs>) << i++), ...);
    return call(tensors, sizeof...(Inputs), [&]([[maybe_unused]] auto read) {
      std::size_t at = 0;
      (read(at++, inputs), ...);
    });
  }
  /// The same with a number of inputs that is known at run time.
  std::vector<runtime_tensor> operator()(const std::vector<runtime_tensor>& inputs) {
    const std::size_t count = inputs.size();
    return call(count < 64 ? (std::uint64_t(1) << count) - 1 : ~std::uint64_t(0), count, [&](auto read) {
      for (std::size_t i = 0; i < inputs.size(); ++i) read(i, inputs[i]);
    });
  }

  /// Bind an input or output to memory of the caller, as `executable::bind_input` does.
  /// Throws `gshard::error`: if there is no such input or output; for another element type or sharding.
  template <class Memory>
  void bind_input(std::size_t i, Memory&& memory) {
    check_outlives<Memory>();
    bind_port(true, i, memory);
  }
  template <class Memory>
  void bind_output(std::size_t i, Memory&& memory) {
    static_assert(!std::is_const_v<std::remove_reference_t<Memory>>, "gshard: an output of a program is bound to const memory");
    check_outlives<Memory>();
    bind_port(false, i, memory);
  }

  /// What the plan assumed, and what a plan for these extents and this cluster would receive, compute and hold. Throws `gshard::error` for
  /// a plan that was read from a file, because a file has no program.
  /// @see executable::plan_report
  gshard::plan_report plan_report() const;

  const runtime_plan& program() const { return program_; }

 private:
  runtime_plan program_;

  runtime_executable(runtime_plan program, const any_cluster& on, parameter_store store, detail::inferred_extents found)
      : untyped_executable(program.plan(), all_kernels, on, found.all, std::move(store), std::move(found.problem), {},
                           std::vector<fact>{{"the compile options of the program", GSHARD_FLOAT_OPTIONS}}, program.owner()),
        program_(std::move(program)) {
    check_replicas_every = detail::steps_between_replica_checks;
  }

  template <class... Inputs>
  static constexpr void check_inputs() {
    static_assert(holds<(detail::program_input<Inputs> && ...), actual_type<Inputs>...>,
                  "gshard: an input of a program is a tensor, a contiguous range (std::vector, std::span), an Eigen matrix, or an "
                  "xtensor array (include <gshard/exec/tensor/eigen.hpp> or <gshard/exec/tensor/xtensor.hpp>); a scalar is an array of "
                  "one element: std::array{rate}");
  }

  template <class... Inputs>
  static detail::inferred_extents infer(const runtime_plan& program, const dims& stated, const Inputs&... inputs) {
    detail::inferred_extents found{stated, {}};
    const process_error thrown = detail::problem_of([&] {  // an array may be an expression, which is computed here
      check_count(program, sizeof...(Inputs));
      std::size_t i = 0;
      (add_shape(found, program.inputs()[i], i, inputs), ...);
    });
    if (found.problem.empty()) found.problem = thrown;
    return found;
  }
  template <class Given>
  static void add_shape(detail::inferred_extents& found, const tensor_text& in, std::size_t& i, const Given& given) {
    const std::string_view letters = in.dims.letters.view();
    if constexpr (detail::is_any_tensor<Given>) found.add(i, letters, given.extents(), in.is_column_major);
    else if constexpr (detail::has_elements<Given>) read_array(given, [&](const auto& array) { found.add(i, letters, array.layout); });
    ++i;
  }
  template <class Given, class F>
  static void read_array(const Given& given, const F& f) {
    detail::read_whole<std::remove_const_t<typename detail::whole_element<Given>::type>>(given, f);
  }

  /// for_each(read) calls read(i, input) for all inputs.
  template <class ForEach>
  std::vector<runtime_tensor> call(std::uint64_t tensors, std::size_t count, const ForEach& for_each) {
    const detail::thread_rule::use in_use = executor().enter();
    process_error problem = prepare();
    begin_inputs();
    if (problem.empty())
      problem = detail::problem_of([&] {
        check_count(program_, count);
        for_each([&](std::size_t i, const auto& given) { write(i, given); });
      });
    run_once(std::move(problem), tensors, [&](std::vector<fact>& facts) {
      if (count == program_.inputs().size()) for_each([&](std::size_t i, const auto& given) { add_facts(facts, i, given); });
    });
    return outputs();
  }
  template <class Given>
  void write(std::size_t i, const Given& given) {
    if constexpr (std::same_as<Given, bound_memory>) write_bound(i);
    else if constexpr (detail::is_any_tensor<Given>) write_checked(i, given);
    else if constexpr (detail::has_elements<Given>) read_array(given, [&](const detail::untyped_array& array) { write_checked(i, array); });
  }
  template <class Given>
  void add_facts(std::vector<fact>& facts, std::size_t i, const Given& given) const {
    if constexpr (std::same_as<Given, bound_memory>) add_facts_of_bound(facts, i);
    else if constexpr (detail::is_any_tensor<Given>) add_facts_of_tensor(facts, name_of(i), given);
    else if constexpr (detail::has_elements<Given>)
      read_array(given, [&](const auto& array) { add_facts_of_array(facts, name_of(i), array, program_.inputs()[i].is_column_major); });
  }
  template <class Memory>
  void bind_port(bool is_input, std::size_t i, Memory& memory) {
    check_port(is_input, i);
    if constexpr (detail::is_any_tensor<std::remove_const_t<Memory>>) {
      check_tensor(is_input, i, memory);
      bind(is_input, i, memory);
    } else {
      static_assert(detail::has_memory<Memory>, "gshard: a program is bound to an expression without memory; compute it first");
      read_array(memory, [&](const detail::untyped_array& array) {
        check_type(is_input, i, array.type);
        bind(is_input, i, array, is_input && program_.inputs()[i].is_column_major, moves_of(memory));
      });
    }
  }

  static void check_count(const runtime_plan& program, std::size_t given);
  input_name name_of(std::size_t i) const { return {i, program_.inputs()[i].dims.letters.view()}; }
  void write_checked(std::size_t i, const untyped_tensor& given);
  void write_checked(std::size_t i, const detail::untyped_array& given);
  void check_port(bool is_input, std::size_t i) const;
  void check_type(bool is_input, std::size_t i, dtype given) const;
  void check_tensor(bool is_input, std::size_t i, const untyped_tensor& given) const;
  std::vector<runtime_tensor> outputs() const;
};

namespace detail {
/// The tensor, complete on every device.
runtime_tensor on_every_device(const runtime_tensor& t);
}  // namespace detail

/// to_global<float>(t): the complete tensor, row-major, on every process. A partial sum is completed. Collective.
/// Communicates: a reshard to replicated.
/// Throws `gshard::error` if the tensor has another element type, or a device order.
template <class T>
std::vector<T> to_global(const runtime_tensor& t) {
  const runtime_tensor whole = detail::on_every_device(t);
  const auto view = whole.template local_shard<T>(0);
  return std::vector<T>(view.data, view.data + view.size());  // not {}: bool would be a list of two
}

#if GSHARD_HAS_BODIES

GSHARD_INLINE void runtime_executable::check_count(const runtime_plan& program, std::size_t given) {
  if (const std::size_t expected = program.inputs().size(); given != expected)
    throw error("program: it has " + std::to_string(expected) + " inputs, and is called with " + std::to_string(given));
}

GSHARD_INLINE plan_report runtime_executable::plan_report() const {
  const detail::plan_contents& made = program_.contents();
  if (made.traced.nodes.empty()) throw error("plan_report: the plan was read from a file, which does not have its program");
  return detail::make_plan_report(made.traced, made.options, executor());
}

GSHARD_INLINE void runtime_executable::check_port(bool is_input, std::size_t i) const {
  const std::size_t count = is_input ? program_.plan().inputs.size() : program_.plan().outputs.size();
  if (i >= count)
    throw error("program: " + std::string(is_input ? "input " : "output ") + std::to_string(i) + " of " + std::to_string(count));
}

GSHARD_INLINE void runtime_executable::check_type(bool is_input, std::size_t i, dtype given) const {
  const dtype expected = (is_input ? input(i) : output(i)).type;
  if (given != expected)
    throw error("program: " + std::string(is_input ? "input " : "output ") + std::to_string(i) + " has elements of type " +
                std::string(cpp_name(expected)) + ", not " + std::string(cpp_name(given)));
}

GSHARD_INLINE void runtime_executable::check_tensor(bool is_input, std::size_t i, const untyped_tensor& given) const {
  check_type(is_input, i, given.type());
  const detail::bound_value& expected = is_input ? input(i) : output(i);
  const bool same_place = given.cluster().same_as(cluster()) && std::ranges::equal(given.extents(), expected.extents);
  if (same_place && !detail::has_shards(given, expected.layout, expected.places))
    throw error("program: " + std::string(is_input ? "input " : "output ") + std::to_string(i) + " is " + detail::text_of_tensor(given) +
                ", and the program has " + detail::layout_text(expected, cluster().mesh()) + ": reshard it first");
}

GSHARD_INLINE void runtime_executable::write_checked(std::size_t i, const untyped_tensor& given) {
  check_tensor(true, i, given);
  write_tensor(name_of(i), given);
}

GSHARD_INLINE void runtime_executable::write_checked(std::size_t i, const detail::untyped_array& given) {
  check_type(true, i, given.type);
  write_array(name_of(i), given, program_.inputs()[i].is_column_major);
}

GSHARD_INLINE std::vector<runtime_tensor> runtime_executable::outputs() const {
  const plan_view& plan = program_.plan();
  std::vector<runtime_tensor> all;
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    const sharding& layout = plan.at(plan.outputs[i].value).layout;
    const named_sharding spec = detail::spec_of_sharding(layout, plan.mesh, plan.order_of(layout));
    all.push_back(detail::tensor_access::typed<runtime_tensor>(read_output(i, spec, cluster())));
  }
  return all;
}

namespace detail {
GSHARD_INLINE runtime_tensor on_every_device(const runtime_tensor& t) {
  const any_cluster& on = t.cluster();
  for (std::size_t i = 0; i < t.local_shards(); ++i) {
    const kernel::placement here = place(t.extents(), t.layout(), on.backend().extents(), on.devices()[i]);
    if (t.place(i).offset != here.offset || t.place(i).extent != here.extent)
      throw error("to_global: " + t.text() + " has a device order: let the program annotate its output as replicated");
  }
  tensor_text given("");
  given.type = t.type();
  given.dims.letters = std::string_view("abcdefgh").substr(0, t.extents().size());
  given.dims.is_sharded = true;
  given.dims.sharding = spec_of_sharding(t.layout(), on.mesh(), {});
  const runtime_program reshard(
      [](parameter_scope&, symbol x) { return annotate(x, named_sharding{.rank = x.rank()}); }, on.mesh(), {given});
  return std::move(runtime_executable(reshard, on, dims(), t)(t).front());
}
}  // namespace detail

#endif

}}  // namespace gshard::v0
