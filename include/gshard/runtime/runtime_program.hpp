// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A program that is traced and planned when it runs.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/base/reason.hpp>
#include <gshard/core/ir/fault.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/core/program/ports.hpp>
#include <gshard/core/program/program_options.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/parameter_scope.hpp>
#include <gshard/exec/process/callback.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/exec/program/guarded_plan.hpp>
#include <gshard/exec/tensor/any_mesh.hpp>
#include <gshard/exec/tensor/cluster.hpp>
#include <gshard/exec/tensor/tensor_text.hpp>
#include <gshard/runtime/runtime_plan.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/core/program/compile.hpp>
#include <gshard/exec/process/diagnostic.hpp>
#include <gshard/exec/program/replan.hpp>
#endif

namespace gshard { inline namespace v0 {

namespace detail {
/// `compile` in the compiled runtime. Throws `program_error`.
plan_tables compile_traced(gshard::graph& g, const mesh_shape& mesh, const compile_options& options);

/// Calls a model with its inputs, and adds its outputs.
template <class Model, std::size_t... I>
void trace_model(const Model& model, parameter_scope& m, const symbol* inputs, std::index_sequence<I...>) {
  constexpr bool fits = is_called_with<Model, parameter_scope&, one_symbol<I>&...>;
  static_assert(holds<fits, inputs_given<int(sizeof...(I))>>,
                "gshard: the model takes another number of tensors, after its parameter scope, than the program has inputs");
  if constexpr (fits) {
    std::array<symbol, sizeof...(I) + 1> x{inputs[I]...};  // arguments of the model may be references
    using result = decltype(model(m, x[I]...));
    if constexpr (std::is_void_v<result>) {
      model(m, x[I]...);
    } else if constexpr (check_result<result>()) {
      if (const result made = model(m, x[I]...); !m.owner().failed()) add_outputs(m.owner(), made);
    }
  }
}
}  // namespace detail

/// A mistake in a program that is planned at run time: the sentence that the compiler prints for the same program, with its line, operation
/// and tensor.
class program_error : public error {
 public:
  program_error(const std::string& text, const diagnostic& what) : error(text), problem(what) {}

  diagnostic problem;
};

/// A program that is traced and planned at run time, by the functions that the compiler runs for `program`. Its plan is the same, but g++
/// traces the operands of a call from right to left at run time.
///
///     const gs::runtime_program layer(moe_layer, "expert", {"f32[G@expert,S,M]"}, {.compile = {.known = {{'M', 512}}}});
///
/// The model is the callable of `program`, and may have captures. The mesh, the inputs and the options are values.
/// Communicates: nothing.
/// Compile time: that the model takes this number of tensors; the checks of its verbs on types.
/// Throws `program_error` for every fault of the model, its specs and its equations; `gshard::error` for a text that is not a mesh or a
/// tensor.
/// @see program, runtime_executable
class runtime_program : public runtime_plan {
 public:
  template <class Model, std::size_t N>
  runtime_program(const Model& model, const any_mesh& mesh, const tensor_text (&inputs)[N], const program_options& options = {})
      : runtime_program(mesh, inputs, options, [&](parameter_scope& m, list_view<symbol> x) {
          detail::trace_model(model, m, x.data(), std::make_index_sequence<N>{});
        }) {}
  template <class Model>
  runtime_program(const Model& model, const any_mesh& mesh, const program_options& options = {})
      : runtime_program(mesh, {}, options, [&](parameter_scope& m, list_view<symbol>) {
          detail::trace_model(model, m, nullptr, std::index_sequence<>{});
        }) {}
  /// The same with a number of inputs that is known at run time: `model(m, x)` gets a `list_view<symbol>`, and returns its outputs as a
  /// std::vector<symbol>. `keeps`: the owner of the names of source lines, if they are not constant.
  template <class Model>
  runtime_program(const Model& model, const any_mesh& mesh, std::span<const tensor_text> inputs, const program_options& options = {},
                  std::shared_ptr<const void> keeps = nullptr)
      : runtime_program(
            mesh, inputs, options,
            [&](parameter_scope& m, list_view<symbol> x) {
              for (const symbol& output : model(m, x)) detail::add_outputs(m.owner(), output);
            },
            std::move(keeps)) {}

  /// The program before any pass, for `search_shardings` and `compile`.
  const gshard::graph& graph() const { return contents().traced; }
  const compile_options& options() const { return contents().options; }
  /// The same program planned for these extents on this cluster. It has the same inputs, outputs and parameters, with the same shardings.
  /// Throws `program_error` if there is no such plan, because the program is visible or strict.
  runtime_program at(const any_cluster& on, const dims& extents) const;
  /// The same program with the alternative of a guarded plan for these extents.
  /// Throws `gshard::error` if the guarded plan is one of another program.
  runtime_program at(const guarded_plan& plans, const dims& extents) const;

 private:
  using traced_model = callback<void(parameter_scope&, list_view<symbol>)>;
  runtime_program(const mesh_shape& mesh, std::span<const tensor_text> inputs, const program_options& options, const traced_model& model,
                  std::shared_ptr<const void> keeps = nullptr);
  explicit runtime_program(std::shared_ptr<const detail::plan_contents> made) : runtime_plan(std::move(made)) {}
};

/// The same for a program that was made at run time.
/// @see guarded_plan
inline guarded_plan guard(const runtime_program& program, const any_cluster& on, const dims& others, char letter,
                          std::initializer_list<std::int64_t> made_for, const machine* priced_on = nullptr) {
  const std::span extents(made_for.begin(), made_for.size());
  return {program.graph(), program.plan(), on, others, letter, extents, program.options(), priced_on, program.owner()};
}

namespace detail {
/// Traces and plans a program. Throws `program_error`.
std::shared_ptr<const plan_contents> make_plan(const mesh_shape& mesh, std::span<const tensor_text> inputs, const program_options& options,
                                               const callback<void(parameter_scope&, list_view<symbol>)>& model,
                                               std::shared_ptr<const void> keeps);
}  // namespace detail

#if GSHARD_HAS_BODIES

GSHARD_INLINE plan_tables detail::compile_traced(gshard::graph& g, const mesh_shape& mesh, const compile_options& options) {
  plan_tables made;
  made.problem = g.problem;
  if (!made.problem) made = compile(g, mesh, options);
  if (made.problem) throw program_error(describe(made.problem), made.problem);
  return made;
}

GSHARD_INLINE std::shared_ptr<const detail::plan_contents> detail::make_plan(
    const mesh_shape& mesh, std::span<const tensor_text> inputs, const program_options& options,
    const callback<void(parameter_scope&, list_view<symbol>)>& model, std::shared_ptr<const void> keeps) {
  auto made = std::make_shared<plan_contents>();
  made->keeps = std::move(keeps);
  made->inputs.assign(inputs.begin(), inputs.end());
  builder b;
  begin_program(b, mesh, options);
  list<symbol> x;
  for (const tensor_text& in : inputs)
    x.push_back(add_input(b, in.dims.letters.view(), in.type, in.is_column_major, in.dims.is_sharded, in.dims.sharding));
  parameter_scope m(b, options.element);
  model(m, x);
  if (!b.failed()) set_layouts(b.program, options.layouts);
  made->traced = b.program;
  made->options = options.compile;
  made->planned = compile_traced(b.program, mesh, options.compile);
  made->plan = made->planned.view();
  return made;
}

GSHARD_INLINE runtime_program::runtime_program(const mesh_shape& mesh, std::span<const tensor_text> inputs, const program_options& options,
                                               const traced_model& model, std::shared_ptr<const void> keeps)
    : runtime_plan(detail::make_plan(mesh, inputs, options, model, std::move(keeps))) {}

GSHARD_INLINE runtime_program runtime_program::at(const any_cluster& on, const dims& extents) const {
  auto made = std::make_shared<detail::plan_contents>(contents());
  made->planned = detail::plan_at(graph(), plan(), on, extents, options());
  if (made->planned.problem) throw program_error(describe(made->planned.problem), made->planned.problem);
  made->plan = made->planned.view();
  return runtime_program(std::move(made));
}

GSHARD_INLINE runtime_program runtime_program::at(const guarded_plan& plans, const dims& extents) const {
  if (!plans.is_of(plan())) throw error("runtime_program: the guarded plan is one of another program");
  if (!extents.has(plans.letter())) throw error("runtime_program: the extent of " + std::string(1, plans.letter()) + " is not given");
  auto made = std::make_shared<detail::plan_contents>(contents());
  made->planned = *plans.at(extents.find(plans.letter())).plan;
  made->plan = made->planned.view();
  return runtime_program(std::move(made));
}

#endif

}}  // namespace gshard::v0
