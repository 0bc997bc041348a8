// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The program: compiles a model, written over global tensors, into a constant plan for a mesh.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/base/reason.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/ir/spec.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/core/plan/refused_plan.hpp>
#include <gshard/core/program/check.hpp>
#include <gshard/core/program/compile.hpp>
#include <gshard/core/program/ports.hpp>
#include <gshard/core/program/program_options.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/parameter_scope.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 {

namespace detail {
/// The options of an input, in any order: a spec, an element type, a memory order.
template <class... Options>
struct input_options {
  using layout = void;
  using element = float;
  using order = row_major;
  static constexpr int specs = 0, elements = 0, orders = 0;
};
template <class... Entries, class... Rest>
struct input_options<spec<Entries...>, Rest...> : input_options<Rest...> {
  using layout = spec<Entries...>;
  static constexpr int specs = 1 + input_options<Rest...>::specs;
};
template <class Order, class... Rest>
  requires(std::is_same_v<Order, row_major> || std::is_same_v<Order, column_major>)
struct input_options<Order, Rest...> : input_options<Rest...> {
  using order = Order;
  static constexpr int orders = 1 + input_options<Rest...>::orders;
};
template <class... Rest>
struct input_options<void, Rest...> : input_options<Rest...> {};
template <class T, class... Rest>
struct input_options<T, Rest...> : input_options<Rest...> {
  using element = T;
  static constexpr int elements = 1 + input_options<Rest...>::elements;
};

template <fixed_string Dims>
constexpr auto layout_of_text() {
  constexpr dims_text text{Dims.view()};
  if constexpr (text.is_sharded && text.is_valid()) return typename spec_of_text<Dims>::type{};
}
}  // namespace detail

/// An input of a program: its dims and sharding as text, its element type and its memory order. `in<"GSM">` leaves the sharding to
/// propagation, `in<"G@expert,S,M", std::int32_t>` states it. A spec may follow letters: `in<"GSM", P<"expert", none, none>>`. The default
/// type is float. Einsums read a column-major input in its order, without a copy; other verbs take a transposed copy. As a tensor, a
/// column-major input has its dims in the opposite order.
/// @see dims_text
template <fixed_string Dims, class... Options>
struct in {
 private:
  using options = detail::input_options<Options...>;
  using stated = decltype(detail::layout_of_text<Dims>());

 public:
  using element = typename options::element;
  using layout = std::conditional_t<std::is_void_v<stated>, typename options::layout, stated>;
  static constexpr dims_text text{Dims.view()};
  static constexpr std::string_view letters = text.has_letters() ? text.letters.view() : Dims.view();
  static constexpr bool is_column_major = std::is_same_v<typename options::order, column_major>;
  static constexpr bool is_sharded_twice = !std::is_void_v<stated> && !std::is_void_v<typename options::layout>;
  static constexpr bool repeats_options = options::specs > 1 || options::elements > 1 || options::orders > 1;
};
/// The element type of the parameters; the default is float.
template <class T>
struct element {};
/// A compile-time extent. It must be a multiple of the static extents of the mesh axes that shard it.
template <char Letter, std::int64_t Extent>
struct extent {};
/// An extent for which the plan is made. The program runs at any other as well: nothing else depends on this one. For an extent that is
/// neither stated nor assumed, the planner assumes 64.
/// @see assumed_extents
template <char Letter, std::int64_t Extent>
struct assume {
  static_assert(Extent > 0, "gshard: an assumed extent is positive");
};
/// Computes one-hot einsums as dense products, in O(G S E C M), instead of by index.
struct dense_one_hot {};
/// Mixed precision: einsums round their factors to bf16 and sum in float, forward and in gradients. Parameters, optimizer state, all other
/// operations, and einsums inside `full_precision` keep their precision.
/// @see bf16_unit_in_use, kernel::gemm_bf16
struct bf16_products {};
/// Outputs may be partial sums, which are then part of their sharding.
struct partial_outputs {};
namespace detail {
/// Outputs become tensors: they may be partial sums, but no other partial results, which a spec cannot state.
struct partial_sums {};
}  // namespace detail
/// An implicit gather of an operand is a compile-time error, except in gradients. The program allows one by `annotate` or `may_move`.
struct visible {};
/// Any implicit communication is a compile-time error, except in gradients.
struct strict {};
/// Looped einsums. If an operand would be gathered to more than `Bytes` per device, its blocks travel while the einsum computes. Blocks of
/// a partial result travel if more than `Bytes` would be scattered, except under `strict`. A device then holds two blocks instead of the
/// complete tensor. Extents must be known at compile time. The default is 256 MiB, as in XLA. An operand of several einsums travels for
/// each of them.
template <std::int64_t Bytes>
struct loop_above {};
/// Combines collectives of one kind between the same devices into one step, if none depends on another. If their extents are known at
/// compile time, a device receives at most `Bytes` in a combined step. The default is 4 MiB; 0 combines nothing. Collectives inside while
/// loops, and moves to or from a device order, are not combined.
template <std::int64_t Bytes>
struct combine_up_to {};

namespace detail {

template <class T>
inline constexpr bool is_input = false;
template <fixed_string Dims, class... Options>
inline constexpr bool is_input<in<Dims, Options...>> = true;

/// The base of options that other headers add, so that argument-dependent lookup finds their `apply`.
struct added_option {};

template <class T>
constexpr void apply(program_options& o, element<T>) {
  o.element = dtype_of<T>;
}
template <char Letter, std::int64_t Extent>
constexpr void apply(program_options& o, extent<Letter, Extent>) {
  dims& known = o.compile.known;
  if (known.has(Letter) && known.find(Letter) != Extent) known.twice = Letter;
  known.set(Letter, Extent);
}
template <char Letter, std::int64_t Extent>
constexpr void apply(program_options& o, assume<Letter, Extent>) {
  o.compile.assumed.set(Letter, Extent);
}
constexpr void apply(program_options& o, dense_one_hot) { o.sparse_one_hot = false; }
constexpr void apply(program_options& o, bf16_products) { o.bf16_products = true; }
constexpr void apply(program_options& o, visible) { o.compile.implicit_moves = strictness::visible; }
constexpr void apply(program_options& o, strict) { o.compile.implicit_moves = strictness::strict; }
template <std::int64_t Bytes>
constexpr void apply(program_options& o, loop_above<Bytes>) {
  o.compile.loop_bytes = Bytes;
}
template <std::int64_t Bytes>
constexpr void apply(program_options& o, combine_up_to<Bytes>) {
  o.compile.combine_bytes = Bytes;
}
constexpr void apply(program_options& o, partial_outputs) { o.compile.partial_outputs = true; }
constexpr void apply(program_options& o, partial_sums) { o.compile.partial_outputs = o.compile.only_partial_sums = true; }
template <fixed_string Dims, class... Options>
constexpr void apply(program_options&, in<Dims, Options...>) {}

template <class T>
concept program_option = requires(program_options& o) { apply(o, T{}); };

template <class Input>
constexpr symbol add_input(builder& b) {
  if (Input::is_sharded_twice) b.fail(fault::sharded_twice, Input::letters);
  if (Input::repeats_options) b.fail(fault::option_of_input_twice, Input::letters);
  constexpr dtype type = dtype_of<typename Input::element>;
  constexpr bool has_spec = !std::is_void_v<typename Input::layout>;
  using stated = std::conditional_t<has_spec, typename Input::layout, spec<>>;
  return add_input(b, Input::letters, type, Input::is_column_major, has_spec, stated::named);
}
template <class Option>
constexpr auto input_tuple(builder& b) {
  if constexpr (is_input<Option>) return std::tuple<symbol>{add_input<Option>(b)};
  else return std::tuple<>{};
}

template <class Model, std::size_t... I>
constexpr bool takes_inputs(std::index_sequence<I...>) {
  return is_called_with<Model, parameter_scope&, one_symbol<I>&...>;
}
/// Replaces the model if its program has an invalid option, so that only the option is reported.
struct any_model {
  void operator()(auto&&...) const;
};
/// True if the body of a model compiles. This function is short and uses the body first, because compilers print the path to a mistake.
template <auto Model, bool TakesThese, std::size_t... I>
constexpr bool compiles(std::index_sequence<I...>) {
  if constexpr (TakesThese && requires(parameter_scope& m, one_symbol<I>&... x) { Model(m, x...); }) {
    using result = decltype(Model(std::declval<parameter_scope&>(), std::declval<one_symbol<I>&>()...));
    return check_result<result>();
  } else {
    return false;
  }
}

template <auto Model, class Mesh, class... Options>
constexpr graph trace_program(const program_options& options) {
  builder b;
  begin_program(b, Mesh::shape, options);
  parameter_scope m(b, options.element);
  // Braces fix the order of evaluation, and therefore the order of the inputs.
  const std::tuple<decltype(input_tuple<Options>(b))...> parts{input_tuple<Options>(b)...};
  const auto symbols = std::apply([](const auto&... p) { return std::tuple_cat(p...); }, parts);
  const auto call = [&](auto... s) {
    if constexpr (std::is_void_v<decltype(Model(m, s...))>) Model(m, s...);
    else if (const auto result = Model(m, s...); !b.failed()) add_outputs(b, result);
  };
  std::apply(call, symbols);
  return static_cast<graph&&>(b.program);
}

template <class... Options>
constexpr program_options options_of() {
  program_options options;
  (apply(options, Options{}), ...);
  return options;
}

}  // namespace detail

/// The graph of a model, with its annotations, before any pass: `trace<moe_layer, mesh, in<"GSM", P<"expert", none, none>>>()`. Takes the
/// arguments of `program`. A mistake in the model is in `problem` of the graph.
/// @see compile, program
template <auto Model, class Mesh, class... Options>
constexpr graph trace() {
  const program_options options = detail::options_of<Options...>();
  graph g = detail::trace_program<Model, Mesh, Options...>(options);
  detail::set_layouts(g, options.layouts);
  return g;
}

/// The options by which `program<Model, Mesh, Options...>` is compiled.
template <class... Options>
constexpr compile_options compile_options_of() {
  return detail::options_of<Options...>().compile;
}

namespace detail {

template <auto Model, class Mesh, class... Options>
constexpr plan_tables build_program() {
  graph g = trace<Model, Mesh, Options...>();
  return compile(g, Mesh::shape, compile_options_of<Options...>());
}

struct plan_sizes {
  std::size_t dims, values, steps, parameters, inputs, outputs, windows, orders;

  constexpr bool fit(const plan_sizes& room) const {
    return dims <= room.dims && values <= room.values && steps <= room.steps && parameters <= room.parameters && inputs <= room.inputs &&
           outputs <= room.outputs && windows <= room.windows && orders <= room.orders;
  }
};

/// A row of a table that may stay empty. A union, because clang evaluates each member of an empty row.
template <class Row>
union maybe_row {
  char nothing;
  Row row;
  constexpr maybe_row() : nothing(0) {}
};

template <class Row>
using just_row = Row;

template <class Row>
constexpr void copy_rows(Row* to, const Row* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
}
template <class Row>
constexpr void copy_rows(maybe_row<Row>* to, const Row* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) std::construct_at(&to[i].row, from[i]);
}
template <class Row>
constexpr void copy_rows(Row* to, const maybe_row<Row>* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = from[i].row;
}

/// The tables of a plan in arrays of `Place<row>`. Place is the row itself, or maybe_row while the sizes of the plan are not known yet.
template <plan_sizes N, template <class> class Place>
struct plan_arrays {
  std::array<Place<dim>, N.dims> dims{};
  std::array<Place<value>, N.values> values{};
  std::array<Place<lifetime>, N.values> lifetimes{};
  std::array<Place<node>, N.steps> steps{};
  std::array<Place<parameter>, N.parameters> parameters{};
  std::array<Place<port>, N.inputs> inputs{};
  std::array<Place<port>, N.outputs> outputs{};
  std::array<Place<window>, N.windows> windows{};
  std::array<Place<int>, N.orders> orders{};

  /// Copies the first rows of other tables.
  template <class Tables>
  constexpr plan_arrays(const Tables& p, const plan_sizes& sizes) {
    copy_rows(dims.data(), p.dims.data(), sizes.dims);
    copy_rows(values.data(), p.values.data(), sizes.values);
    copy_rows(lifetimes.data(), p.lifetimes.data(), sizes.values);
    copy_rows(steps.data(), p.steps.data(), sizes.steps);
    copy_rows(parameters.data(), p.parameters.data(), sizes.parameters);
    copy_rows(inputs.data(), p.inputs.data(), sizes.inputs);
    copy_rows(outputs.data(), p.outputs.data(), sizes.outputs);
    copy_rows(windows.data(), p.windows.data(), sizes.windows);
    copy_rows(orders.data(), p.orders.data(), sizes.orders);
  }
};

/// The table sizes up to which a plan is made in one evaluation. A larger plan is made twice: for its sizes, then into arrays of these
/// sizes.
inline constexpr plan_sizes ample{256, 1 << 15, 1 << 15, 1 << 13, 64, 64, 256, 256};

/// A plan whose sizes are not constants yet: its sizes, and its tables if they fit into `ample`.
struct plan_draft {
  plan_sizes sizes{};
  diagnostic problem;
  plan_arrays<ample, maybe_row> tables;

  constexpr explicit plan_draft(const plan_tables& p)
      : sizes{p.dims.size(), p.values.size(), p.steps.size(), p.parameters.size(), p.inputs.size(), p.outputs.size(), p.windows.size(),
              p.orders.size()},
        problem(p.problem),
        tables(p, sizes.fit(ample) ? sizes : plan_sizes{}) {}
};

}  // namespace detail

/// A model, written over global tensors, compiled for a mesh: `program<moe_layer, mesh, in<"GSM", P<"expert", none, none>>>`. `Model` is a
/// captureless callable `(parameter_scope&, symbol...) -> symbol | std::tuple<symbol...>`. The options are its inputs in order, and maybe
/// `element<T>`, `extent<'E', 16>`, `visible`, `strict`, `partial_outputs`, `dense_one_hot`, `bf16_products`, `loop_above<bytes>`,
/// `combine_up_to<bytes>`. `plan` is a constant: a static_assert can check the work and the communication of a device.
/// Compile time: every fault of the model, its specs and its equations, as one message with the wrong words next to it.
template <auto Model, class Mesh, class... Options>
class program {
  static constexpr bool is_well_named = detail::mesh_type<Mesh> && (detail::program_option<Options> && ...);
  static_assert(holds<is_well_named, actual_type<Mesh>, actual_type<Options>...>,
                "gshard: program<model, mesh, ...> takes a mesh, and then inputs (in<...>) and options of a program");
  static constexpr int given = (0 + ... + int(detail::is_input<Options>));
  using inputs_in_order = std::make_index_sequence<std::size_t(given)>;
  using judged_model = std::conditional_t<is_well_named, decltype(Model), detail::any_model>;
  static constexpr bool takes_these = detail::takes_inputs<judged_model>(inputs_in_order{});
  static_assert(holds<takes_these, inputs_given<given>>,
                "gshard: the model takes another number of tensors, after its parameter scope, than the program has inputs (in<...>)");
  using compiles = std::bool_constant<detail::compiles<Model, is_well_named && takes_these>(inputs_in_order{})>;
  using planned_mesh = std::conditional_t<is_well_named, Mesh, gshard::mesh<>>;
  static constexpr plan_tables compiled() {
    if constexpr (compiles::value) return detail::build_program<Model, Mesh, Options...>();
    else return {};
  }
  static constexpr detail::plan_draft draft{compiled()};
  static_assert(detail::check_program<draft.problem.what, draft.problem, planned_mesh>());
  static constexpr detail::plan_sizes sizes = draft.sizes;
  static constexpr decltype(auto) tables() {
    if constexpr (sizes.fit(detail::ample)) return (draft.tables);
    else return compiled();
  }
  static constexpr detail::plan_arrays<sizes, detail::just_row> storage{tables(), sizes};

 public:
  using mesh = Mesh;
  /// The program before any pass, traced by this call.
  static constexpr graph traced() { return trace<Model, Mesh, Options...>(); }
  static constexpr compile_options options() { return compile_options_of<Options...>(); }
  /// The inputs, in order.
  using inputs = decltype(std::tuple_cat(std::conditional_t<detail::is_input<Options>, std::tuple<Options>, std::tuple<>>{}...));

  /// A `plan_view`. If the program does not compile, a `refused_plan`, for which every further assertion holds.
  static constexpr std::conditional_t<compiles::value && !draft.problem, plan_view, detail::refused_plan> plan{
      plan_view{planned_mesh::shape, storage.dims, storage.values, storage.lifetimes, storage.steps, storage.parameters, storage.inputs,
                storage.outputs, storage.windows, storage.orders}};
};

}}  // namespace gshard::v0
